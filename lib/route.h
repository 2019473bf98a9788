/* SPDX-License-Identifier: MIT */
/*
 * Routes: how a changed path is treated when it is published, see
 * sb-change(5). The .gitignore files of the lease list decide, with git's
 * rules, whether a path is ignored; what lies below a directory named .git
 * that is not in an ignored one belongs to git; the rest is source. Only what is in those layers counts: no other
 * excludes, and nothing is asked about what git tracks.
 */
#ifndef SB_ROUTE_H
#define SB_ROUTE_H

#include <stdbool.h>

#include "view.h"

struct route; /* incomplete */

/*
 * Takes the rules from lease, which is borrowed and must outlive the result;
 * NULL: there are no rules. Caller frees with route_close.
 */
struct route *route_open(struct view *lease);
void route_close(struct route *r);

/*
 * The route letter of path (as path_is_valid): 'i' when it lies in an ignored
 * directory, else 'g' when a component before the last is .git, else 'i' when
 * the rules ignore it, else 's'. dir: whether the path is looked at as a
 * directory; a .git directory in no ignored one is 's' whatever the rules say. -1 with errno when a directory or a .gitignore file cannot be read.
 * Paths in path_cmp order are the cheap ones: each .gitignore is read and
 * compiled once while paths below its directory are asked for.
 */
int route_of(struct route *r, const char *path, bool dir);

#endif
