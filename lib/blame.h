/* SPDX-License-Identifier: MIT */
/*
 * Who owns the lines of a file: the files meta/ID.blame, sb-store(5). A layer
 * that is committed carries one entry for each file whose content it changed:
 * the owners of its lines, or one owner for the whole. Squash, rollback and
 * deletion need nothing more, because the answer follows the list of layers.
 */
#ifndef SB_BLAME_H
#define SB_BLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "merge3.h"
#include "view.h"

#define OWNER_MAX      256
#define OWNER_ORIGINAL "original" /* lines of the base */
#define OWNER_UNKNOWN  "unknown"

/* UTF-8 without control characters (C0, DEL, C1), 1 to OWNER_MAX bytes. */
bool owner_is_valid(const char *s);

struct owner_range {
	size_t count; /* lines, at least 1; 0 when whole */
	char *owner;
};

/*
 * Owners of the lines of one text: ranges that tile it from its first line on,
 * neighbours different; or, when whole is set, one element without a count:
 * whatever lines the text has. A line is as in merge3.h.
 */
struct owners {
	bool whole;
	struct owner_range *v;
	size_t n;
	size_t cap; /* private */
};

#define OWNERS_INIT { .v = NULL }

/* Adds the next count lines; joined to the last when that has this owner. A
 * count of 0 adds nothing. Not on what is whole. owner is copied. */
void owners_add(struct owners *o, size_t count, const char *owner);

/* Makes o whole, whatever it was. owner is copied. */
void owners_set_whole(struct owners *o, const char *owner);

/* The sum of the counts; 0 when whole. */
size_t owners_lines(const struct owners *o);
void owners_release(struct owners *o);

/*
 * Fills out (OWNERS_INIT, or released) with the owners of a merged text, whose
 * lines have the origins r (of merge3): mine, or what head says. head is what
 * blame_get gave for head's version; NULL means that nothing published it, so
 * that its lines are OWNER_ORIGINAL. Lines that it does not know are
 * OWNER_UNKNOWN. No ranges, an empty text: whole, mine.
 */
void owners_map(const struct owners *head, const struct merge_range *r,
    size_t n, const char *mine, struct owners *out);

/*
 * Appends the entry of path, which must be above the one before in path_cmp;
 * o is whole or has at least one line. blame_stop ends the file.
 */
void blame_format(struct buf *out, const char *path, const struct owners *o);
void blame_stop(struct buf *out);

/*
 * Calls fn for each entry of the text of a blame file. fn returns 0 to go on;
 * anything else stops and is returned. path and o are borrowed for the call.
 * -1 with EINVAL when the text is no blame file: *why (if not NULL) then is
 * static text.
 */
int blame_parse(const struct buf *text,
    int (*fn)(void *arg, const char *path, const struct owners *o), void *arg,
    const char **why);

struct blame; /* incomplete */

/*
 * Looks owners up in the layers of v, which is borrowed, as stackfd is: both
 * must outlive it. Files are read when they are needed and kept. Caller frees
 * with blame_close.
 */
struct blame *blame_open(int stackfd, struct view *v);
void blame_close(struct blame *b);

/*
 * Owners of the file that the view shows at path. From the newest layer down:
 * a layer's entry is the answer; a layer that has the file without one (its
 * mode was changed) is passed over; a published layer without any blame file
 * knows nothing (OWNER_UNKNOWN, whole), nor is anything known when the file
 * ends at a layer that has no entry and is no base. 1 and out (OWNERS_INIT, or
 * released); 0 when the base was reached, so that all is OWNER_ORIGINAL, or
 * there is no file. -1 with errno, EINVAL when a blame file is damaged.
 */
int blame_get(struct blame *b, const char *path, struct owners *out);

/*
 * Fills out (OWNERS_INIT, or released) with the owners of text, which takes the
 * place of what head shows at path: lines that stay keep theirs. head is the
 * text there; NULL when there is none that has lines. m says which lines of
 * text are head's, NULL: they are compared. Both are text_is_mergeable, text
 * is not empty. -1 with errno, as blame_get, or merge3.
 */
int blame_text(struct blame *b, const char *path, const struct buf *head,
    const struct buf *text, const struct merge *m, const char *mine,
    struct owners *out);

/* After -1 of them: the file at fault ("meta/ID.blame"), or NULL when it was
 * the view. Borrowed until the next call. */
const char *blame_where(const struct blame *b);

/* Lines from the offset of fd to its end. -1 with errno. */
int lines_count(int fd, uint64_t *n);

#endif
