/* SPDX-License-Identifier: MIT */
/*
 * What is asked of a file system that keeps state, each for a child of
 * probe_run, in an empty directory of its own.
 */
#ifndef SB_PROBEDIR_H
#define SB_PROBEDIR_H

int probe_locks(void);
int probe_room(void);

/* An overlay over it; way as overlay_parse_way takes it. */
int probe_overlay(void);
int probe_way(const char *way);
int probe_whiteout(void);
int probe_opaque(void);
int probe_rename(void);
int probe_xattr(void);
int probe_layers(void);

/* The root of a box over the host's. */
int probe_box_root(void);

#endif
