/* SPDX-License-Identifier: MIT */
/*
 * sb-token: the tokens that the gateway takes besides the master token. Shape:
 * sink for new and rm, source for ls.
 *
 *   new  Make 32 random bytes, write them and the groups into a file under a
 *        dot name, synced; give it its name, unless that is taken.
 *   ls   Print names and groups, never a token.
 *   rm   Remove the file: from the next request on the token is none.
 *
 * The gate reads the files at each request, so nothing is told or restarted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"
#include "mem.h"
#include "path.h"
#include "place.h"
#include "stage.h"
#include "token.h"

static const char usage[] = "sb-token ls | new [-r] [-g groups] name | rm name";

static int tokensfd = -1;

static const char *
name_operand(int argc, char **argv)
{
	if (optind + 1 != argc)
		usage_die(usage);
	if (!id_is_valid(argv[optind]))
		die(EXIT_USAGE, "not a name for a token: %s", argv[optind]);
	return argv[optind];
}

static void
new_token(int argc, char **argv)
{
	unsigned groups = GROUPS_ALL;
	bool replace = false;
	struct buf text = BUF_INIT;
	const char *name;
	char hex[65], *aside;
	int opt;

	while ((opt = getopt(argc, argv, "+g:rh")) != -1) {
		if (opt == 'r') {
			replace = true;
		} else if (opt == 'g') {
			for (char *p = optarg; *p; p++)
				if (*p == ',')
					*p = ' ';
			groups = token_groups_parse(optarg);
			if (groups == 0)
				die(EXIT_USAGE,
				    "groups are management, runtime and "
				    "observability, not: %s",
				    optarg);
		} else if (opt == 'h') {
			usage_help(usage);
		} else {
			usage_die(usage);
		}
	}
	name = name_operand(argc, argv);
	if (token_make(hex) == -1)
		die_sys("unable to get random bytes");
	buf_addf(&text, "%s\n", hex);
	token_groups_print(&text, groups);
	buf_addc(&text, '\n');
	aside = replace ? xstrdup(name)
			: xasprintf(".%s.%ld", name, (long)getpid());
	if (stage_file(tokensfd, aside, text.data, text.len, 0600) == -1)
		die_sys("unable to write token %s", name);
	if (!replace) {
		int rc = linkat(tokensfd, aside, tokensfd, name, 0);
		int err = errno;

		unlinkat(tokensfd, aside, 0);
		errno = err;
		if (rc == -1 && errno == EEXIST)
			die(EXIT_CONFLICT,
			    "there is a token %s already: -r replaces it",
			    name);
		if (rc == -1 || stage_sync_dir(tokensfd, ".") == -1)
			die_sys("unable to write token %s", name);
	}
	puts(hex);
}

static void
list(int argc, char **argv)
{
	struct names names = NAMES_INIT;

	(void)argv;
	if (optind != argc)
		usage_die(usage);
	if (names_read(tokensfd, &names) == -1)
		die_sys("unable to read the tokens");
	for (size_t i = 0; i < names.n; i++) {
		struct buf token = BUF_INIT, why = BUF_INIT, words = BUF_INIT;
		unsigned groups;

		if (!id_is_valid(names.name[i]))
			continue;
		if (token_read_entry(
			tokensfd, names.name[i], &token, &groups, &why)) {
			token_groups_print(&words, groups);
			printf("%s\t%s\n", names.name[i], buf_str(&words));
		} else {
			buf_cut(&why, why.len - 1);
			warn_msg("token %s", buf_str(&why));
		}
		buf_release(&token);
		buf_release(&why);
		buf_release(&words);
	}
	puts("");
}

static void
remove_token(int argc, char **argv)
{
	const char *name = name_operand(argc, argv);

	if (unlinkat(tokensfd, name, 0) == -1) {
		if (errno == ENOENT)
			die(EXIT_NO, "no such token: %s", name);
		die_sys("unable to remove token %s", name);
	}
	if (stage_sync_dir(tokensfd, ".") == -1)
		die_sys("unable to sync the removal of token %s", name);
	puts(name);
}

int
main(int argc, char **argv)
{
	const char *verb;
	char *state;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind == argc)
		usage_die(usage);
	verb = argv[optind++];
	if (strcmp(verb, "new") != 0 && strcmp(verb, "ls") != 0 &&
	    strcmp(verb, "rm") != 0)
		usage_die(usage);
	state = place_state();
	tokensfd = place_make(state, "tokens");
	if (tokensfd == -1)
		die_sys("unable to make %s/tokens", state);
	if (*verb == 'n')
		new_token(argc, argv);
	else if (*verb == 'l')
		list(argc, argv);
	else
		remove_token(argc, argv);
	stdout_done();
	return EXIT_OK;
}
