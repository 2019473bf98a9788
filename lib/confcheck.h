/* SPDX-License-Identifier: MIT */
/*
 * Checks what a document says as a whole: keys and sections that are missing,
 * and values that do not go together.
 */
#ifndef SB_CONFCHECK_H
#define SB_CONFCHECK_H

#include <stdbool.h>

#include "buf.h"
#include "confdoc.h"
#include "ytree.h"

/*
 * After confwalk, with the same. False: why says what is wrong. True: doc has a
 * warning for each key that is set and that no command reads.
 */
bool confcheck(struct confdoc *doc, const struct ynode *root, struct buf *why);

#endif
