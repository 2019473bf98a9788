/* SPDX-License-Identifier: MIT */
/*
 * The rules of one .gitignore file, as git reads them. Pure: text in, answers
 * out; which file has the last word is the caller's business (route.h).
 *
 * Rules and paths are bytes, upper and lower case differ. Hostile rules cost
 * no more than the length of the rule times that of the path.
 */
#ifndef SB_IGNORE_H
#define SB_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

struct ignore; /* incomplete */

enum ignore_say {
	IGNORE_NOTHING, /* no rule matches */
	IGNORE_YES,
	IGNORE_NO, /* taken back by a rule with '!' */
};

/*
 * Compiles n bytes of text, which may be anything and of any length: a line
 * that cannot match is no rule. The text is not needed afterwards. Caller
 * frees with ignore_free.
 */
struct ignore *ignore_compile(const char *text, size_t n);
void ignore_free(struct ignore *ig);

/* Is there no rule at all? */
bool ignore_is_empty(const struct ignore *ig);

/*
 * What the last rule that matches says about path, which is relative to the
 * directory of the file (as path_is_valid); dir: it is a directory. Whether a
 * directory above path is ignored is not looked at. *line, if not NULL, is
 * the number of the rule's line, from 1; 0 when none matches.
 */
enum ignore_say ignore_ask(
    const struct ignore *ig, const char *path, bool dir, size_t *line);

#endif
