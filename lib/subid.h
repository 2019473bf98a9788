/* SPDX-License-Identifier: MIT */
/*
 * Subordinate ids, subuid(5): what an ordinary user's namespaces may have
 * besides the user's own ids, by leave of newuidmap(1) and newgidmap(1).
 */
#ifndef SB_SUBID_H
#define SB_SUBID_H

#include <sys/types.h>

/*
 * Writes the maps of the user namespace of a process as its parent: our own
 * ids are root there, the first ranges of subordinate ones follow. -1 with
 * ENOENT: we have none, or the programs are missing, and nothing is written.
 * EPERM: one of them refused, and has said why.
 */
int subid_map(pid_t pid);

/*
 * As ns_own_files of ns.h, with subordinate ids if there are some: power over
 * files of theirs as well.
 */
int subid_own_files(void);

#endif
