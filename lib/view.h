/* SPDX-License-Identifier: MIT */
/*
 * The merged view of a list of layers, read without a mount. For each
 * directory on the way the view knows which layers show through (newest
 * first, ending at an opaque one or at a whiteout, file or link in the way),
 * so a look-up costs one lstat per layer that has the directory. Ancestors
 * are never followed through links. Layers are immutable, so what was
 * verified once stays true.
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
 * Opens the layers of ids (newest first) below stackfd; raises the soft limit
 * of descriptors to the hard one when needed. ids is copied. NULL with errno;
 * *bad, if not NULL, is then the index of the layer that could not be opened.
 */
struct view *view_open(int stackfd, const struct ids *ids, size_t *bad);
void view_close(struct view *v);

/* Looks path up ("" is the root). -1 with errno on I/O errors only. */
int view_get(struct view *v, const char *path, struct node *out);

/* Names visible in directory path, sorted bytewise. ENOTDIR when it is none. */
int view_list(struct view *v, const char *path, struct names *out);

/*
 * Opens what view_get found (a file for reading, a directory), in its layer.
 * For NODE_DIR the topmost layer's directory, whose attributes are the
 * view's.
 */
int view_fd(struct view *v, const char *path, const struct node *n);

/* Target of a symbolic link. */
int view_readlink(
    struct view *v, const char *path, const struct node *n, struct buf *out);

/* Id of layer index i. Borrowed. */
const char *view_layer_id(const struct view *v, size_t i);

/*
 * Depth-first, path_cmp order: calls fn for everything visible strictly below
 * path. fn returns 0 to go on, anything else stops and is returned.
 */
int view_walk(struct view *v, const char *path,
    int (*fn)(void *arg, const char *path, const struct node *n), void *arg);

#endif
