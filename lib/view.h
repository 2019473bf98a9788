/* SPDX-License-Identifier: MIT */
/*
 * The merged view of a list of layers, read without a mount, with the answers
 * that a kernel overlay of them gives. For each directory on the way the view
 * knows which layers have it (newest first, ending at a whiteout, file or link
 * in the way), so that no look-up follows a link or asks a layer that has no
 * say. It asks no more layers than it needs, and what they hide only when
 * there is something to hide. Directories stay known until a path outside them
 * is asked for: sorted look-ups are the cheap ones. Layers are immutable, so
 * what was verified once stays true.
 *
 * Besides what the kernel knows, a regular file .wh.NAME deletes NAME,
 * whatever is beside it, and the entry .wh..wh..opq makes its directory
 * opaque; neither is an entry itself. Not so in a base (its id begins with B)
 * and in a layer with a meta/ID.json: sb-layer-commit, which wrote that, takes
 * no such names. The root of a layer is never opaque, as in the kernel.
 */
#ifndef SB_VIEW_H
#define SB_VIEW_H

#include <sys/stat.h>

#include "buf.h"
#include "path.h"
#include "rec.h"

enum node_kind {
	NODE_ABSENT,
	NODE_FILE,
	NODE_SYMLINK,
	NODE_DIR,
	NODE_SPECIAL,
};

struct node {
	enum node_kind kind;
	struct stat st; /* undefined when absent */
	size_t layer; /* index in the list, of the newest that shows it */
};

struct view; /* incomplete */

/*
 * Opens the layers of ids (newest first) below stackfd, one descriptor each.
 * The view then takes at most an eighth of the limit, and 1 024, more; it does
 * with none. The soft limit of descriptors becomes the hard one. ids is copied.
 * NULL with errno; *bad, if not NULL, is then the index of the layer that
 * could not be opened. Caller frees with view_close.
 */
struct view *view_open(int stackfd, const struct ids *ids, size_t *bad);
void view_close(struct view *v);

/*
 * Looks path up: "" is the root, absent only when there are no layers; else as
 * path_is_valid. 0, or -1 with errno on I/O errors only: what is not there, or
 * below something that is no directory, is NODE_ABSENT.
 */
int view_get(struct view *v, const char *path, struct node *out);

/*
 * Calls fn for every layer that says something about path by itself, newest
 * first: those that hold something there, and those that delete it there
 * (NODE_ABSENT, with the layer set; st is undefined). A layer that an ancestor
 * of path hides has no say, nor has what is below something that is no
 * directory. The call for the first layer that holds anything but a regular
 * file there is the last; the first call is for what view_get finds. fn must
 * not use the view; n is borrowed for the call; it returns 0 to go on,
 * anything else stops and is returned. 0 at the end, -1 with errno.
 */
int view_layers(struct view *v, const char *path,
    int (*fn)(void *arg, size_t layer, const struct node *n), void *arg);

/*
 * Adds the names visible in directory path to out, sorted bytewise. -1 with
 * errno; ENOTDIR when path is absent or not a directory.
 */
int view_list(struct view *v, const char *path, struct names *out);

/*
 * Opens what view_get found, in its layer: a file for reading, or a directory
 * (of the newest layer that has it, whose attributes are the view's). EINVAL
 * for other kinds. Caller closes.
 */
int view_fd(struct view *v, const char *path, const struct node *n);

/* Appends the target of the symbolic link that view_get found. */
int view_readlink(
    struct view *v, const char *path, const struct node *n, struct buf *out);

/* Id of layer i of the list. Borrowed. */
const char *view_layer_id(const struct view *v, size_t i);

/*
 * Calls fn for everything visible strictly below path, in path_cmp order;
 * nothing is below what is absent or no directory. fn may use the view, path
 * and n are borrowed for the call; it returns 0 to go on, anything else stops
 * and is returned. -1 with errno when a directory cannot be read.
 */
int view_walk(struct view *v, const char *path,
    int (*fn)(void *arg, const char *path, const struct node *n), void *arg);

#endif
