/* SPDX-License-Identifier: MIT */
/*
 * The manifest: the ordered list of layers, newest first, and a version; see
 * sb-store(5). manifest.json is only ever replaced by rename, so a reader
 * without a lock sees one list or the other, never a mixture.
 */
#ifndef SB_STACK_H
#define SB_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "hash.h"
#include "rec.h"

#define STACK_LOCK        ".storage-writer.lock"
#define STACK_MANIFEST    "manifest.json"
#define STACK_BINDING     "workspace.json"
#define STACK_LAYERS_MAX  100000
#define STACK_VERSION_MAX INT64_MAX

struct manifest {
	uint64_t version;
	char **id; /* newest first */
	char **path; /* of each, below layer-stack */
	size_t n;
	size_t cap; /* private */
};
#define MANIFEST_INIT { .version = 0 }

/*
 * Reads dirfd/name. A missing manifest is an empty one of version 0, but not
 * where a binding is beside it. EINVAL when the text is not a manifest: *why
 * then says what is wrong (static text, containing "schema_version" or "layer
 * path" where those are at fault).
 */
int manifest_read(
    int dirfd, const char *name, struct manifest *m, const char **why);

/* As manifest_read from text. */
int manifest_parse(
    const char *p, size_t n, struct manifest *m, const char **why);

/* Pretty text, two-space indent, keys in order, no final newline. */
void manifest_format(const struct manifest *m, struct buf *out);

/* Adds a layer at the old end. path NULL: "layers/<id>". */
void manifest_add(struct manifest *m, const char *id, const char *path);
bool manifest_has(const struct manifest *m, const char *id);
bool manifest_equal_layers(const struct manifest *a, const struct manifest *b);
void manifest_release(struct manifest *m);

/* SHA-256 of the compact ASCII JSON of the layers; excludes the version. */
void manifest_root_hash(const struct manifest *m, char hex[HASH_HEX + 1]);

/* "base/<id>" for ids beginning with B where stackfd/base exists, else
 * "layers/<id>". */
void stack_layer_path(int stackfd, const char *id, struct buf *out);

/*
 * Opens the directory of a layer (O_RDONLY | O_DIRECTORY): no link is
 * followed but stackfd/base, once, when it and what it names belong to us or
 * to root. ENOENT when it is not there.
 */
int stack_open_layer(int stackfd, const char *id);

/*
 * Has the session whose directory is dirfd no lease, since the machine crashed
 * while it was being made? An automatic one gets its lease synced only before
 * something is said of it.
 */
bool stack_lease_never_was(int dirfd);

/*
 * Everything in use: head, every workspace/<id>/lease (also of sessions that
 * are just being made), every live leases/<name>/{manifest,added}. Call with
 * the stack lock held exclusively for a decision, after listing layers/. -1
 * with errno when anything of it cannot be read, or head or the lease of a
 * session is missing; *why then names it (borrowed until the next call).
 */
int stack_used(int storefd, struct ids *used, const char **why);

/*
 * A lease of short work: makes leases/NAME with its lock held, the manifest m
 * written in it. Returns the lock's descriptor, close-on-exec. The lease dies
 * with it. Call with the stack lock held (shared will do) since before m was
 * read. A dead lease of the name is replaced; EEXIST when it is alive.
 */
int stack_lease(int stackfd, const char *name, const struct manifest *m);

/* 1 when leases/NAME is alive, 0 when not, -1 with errno. */
int stack_lease_is_held(int stackfd, const char *name);

/* Appends an id to leases/NAME/added, before the layer becomes visible. */
int stack_lease_add(int stackfd, const char *name, const char *id);

/* Removes leases/NAME; its lock is the caller's to close afterwards. */
int stack_lease_drop(int stackfd, const char *name);

#endif
