/* SPDX-License-Identifier: MIT */
/*
 * A bound on how many do something at once, among processes that know nothing
 * of each other: files 0 to n - 1 of a directory, each locked by who has it.
 */
#ifndef SB_SLOT_H
#define SB_SLOT_H

#include <stdbool.h>

/*
 * Takes one of n slots; one in sixteen is kept for the urgent. Returns a
 * descriptor, which has the slot until it is closed; -1 with EAGAIN when none
 * is free, or another errno.
 */
int slot_take(int dirfd, unsigned n, bool urgent);

#endif
