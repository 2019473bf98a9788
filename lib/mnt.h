/* SPDX-License-Identifier: MIT */
/*
 * Mounts of our own mount namespace, mount(2), mount_setattr(2),
 * move_mount(2): the steps of which the views of sessions and sandboxes are
 * made. All return 0, or -1 with errno and in why what was impossible. Paths
 * are absolute.
 */
#ifndef SB_MNT_H
#define SB_MNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "buf.h"

/* An empty tmpfs, without set-id programs and devices. */
int mnt_tmpfs(const char *path, const char *options, unsigned long flags,
    struct buf *why);

/* Attributes of the mount at path, or of that of the open fd (path ""). */
int mnt_attr(int fd, const char *path, bool recursive, uint64_t set,
    uint64_t clear, struct buf *why);

/* Hides a directory behind an empty one without permissions, or anything else
 * behind nothing. What is not there needs no hiding. */
int mnt_cover(const char *path, struct buf *why);

/* Moves what fd has open to path, which is not followed. */
int mnt_attach(int fd, const char *path, struct buf *why);

/*
 * Binds the tree at from, with what is mounted below it if deep is true, onto
 * what is at to, and sets attributes, see MOUNT_ATTR_RDONLY.
 */
int mnt_bind(
    const char *from, const char *to, bool deep, uint64_t set, struct buf *why);

/* Makes the directories of the path that are missing, mode 0755. */
int mnt_make_path(const char *path, struct buf *why);

/*
 * A tmpfs at dir with the devices and links of /dev that every program
 * expects, bound from /dev, and directories pts and shm.
 */
int mnt_devices(const char *dir, struct buf *why);

/* Terminals of its own. */
int mnt_terminals(const char *dir, struct buf *why);

/*
 * Of the fresh /proc of a pid namespace: what writes to the host's kernel
 * becomes read-only, what shows its inside is covered.
 */
int mnt_proc_safe(struct buf *why);

/* Puts the tree that fd has open at path, which is made if it is missing. */
int mnt_put(int fd, const char *path, struct buf *why);

bool mnt_is_dir(const char *path);

#endif
