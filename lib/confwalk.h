/* SPDX-License-Identifier: MIT */
/*
 * Takes what a YAML document says: unknown keys, wrong types and values out of
 * bounds are found here.
 */
#ifndef SB_CONFWALK_H
#define SB_CONFWALK_H

#include <stdbool.h>

#include "buf.h"
#include "confdoc.h"
#include "ytree.h"

/*
 * Takes the sections of root, any node, that the role of doc reads. root must
 * live as long as doc. False: why says so as ytree_parse would, with the dotted
 * key.
 */
bool confwalk(struct confdoc *doc, const struct ynode *root, struct buf *why);

#endif
