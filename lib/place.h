/* SPDX-License-Identifier: MIT */
/*
 * Where a user's sandboxes are: $SB_STATE keeps what lasts, $SB_RUN what goes
 * with the machine's run. Ends the program (100) where neither these nor HOME
 * say it.
 */
#ifndef SB_PLACE_H
#define SB_PLACE_H

#include <sys/types.h>

#include "buf.h"
#include "conf.h"

/*
 * $SB_STATE, $XDG_STATE_HOME/sb, /var/lib/sb for root, $HOME/.local/state/sb.
 * Absolute; caller frees.
 */
char *place_state(void);

/* $SB_RUN, $XDG_RUNTIME_DIR/sb, /run/sb for root, run below the state. */
char *place_run(void);

/*
 * Where the operation files are: $SB_OPS, or share/sb/ops beside the directory
 * of this program. NULL with errno.
 */
char *place_ops(void);

/*
 * The file of the master token: $SANDBOX_GATEWAY_TOKEN_FILE, or that below
 * HOME; NULL where neither is set.
 */
char *place_token(void);

/*
 * Opens the directory path/rel, rel perhaps with several components, and makes
 * what is missing with mode 0700. -1 with errno.
 */
int place_make(const char *path, const char *rel);

/* Opens it as it is. */
int place_open(const char *path, const char *rel);

/*
 * The configuration in the state directory: as conf_read, but everything is at
 * its default without that directory, too, and why says what was wrong,
 * whatever it was.
 */
int place_conf(const char *state, struct conf *conf, struct buf *why);

#endif
