/* SPDX-License-Identifier: MIT */
/*
 * Changing one file of head: a layer with the file and the directories above
 * it. The content is made first; then whoever has the lowest ticket of queue.h
 * looks whether head is still the same, and looks again if not, so there is
 * nothing to merge. The programs that commit and swap a publish do it here as
 * well.
 */
#ifndef SB_PUTLAYER_H
#define SB_PUTLAYER_H

#include "put.h"

/* True when there was no file before. The same content makes no layer. */
bool put_on_head(const struct put *p);

#endif
