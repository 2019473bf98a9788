/* SPDX-License-Identifier: MIT */
/*
 * sb-box-ls: print the records of sandboxes. Shape: source; one JSON object,
 * {"sandboxes":[...]}, or the record of the one that is named.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "box.h"
#include "buf.h"
#include "err.h"
#include "failure.h"
#include "io.h"
#include "path.h"
#include "place.h"

static const char usage[] = "sb-box-ls [-p provider] [sandbox]";

static void
one(const char *state, const char *id, struct buf *out)
{
	struct failure f = FAILURE_INIT;
	struct box box = BOX_INIT;

	if (!box_read(state, id, &box, &f))
		answer_error(failure_is(&f, KIND_INTERNAL) ? EXIT_SYS : EXIT_NO,
		    f.kind, &f.details, "%s", buf_str(&f.message));
	box_print(&box, out);
	box_release(&box);
}

/*
 * Those of a provider, or of any where it is NULL. Not those that went while
 * we looked; what is damaged is named.
 */
static void
all(const char *state, const char *provider, struct buf *out)
{
	struct names ids = NAMES_INIT;
	bool first = true;

	if (box_list(state, &ids) == -1)
		die_sys("unable to read %s/" BOX_DIR, state);
	buf_adds(out, "{\"sandboxes\":[");
	for (size_t i = 0; i < ids.n; i++) {
		struct failure f = FAILURE_INIT;
		struct box box = BOX_INIT;
		bool is = box_read(state, ids.name[i], &box, &f);

		if (is &&
		    (!provider ||
			strcmp(buf_str(&box.provider), provider) == 0)) {
			if (!first)
				buf_addc(out, ',');
			first = false;
			box_print(&box, out);
		} else if (!is && failure_is(&f, KIND_INTERNAL)) {
			warn_msg("%s", buf_str(&f.message));
		}
		failure_release(&f);
		box_release(&box);
	}
	buf_adds(out, "]}");
}

int
main(int argc, char **argv)
{
	struct buf out = BUF_INIT;
	const char *provider = NULL;
	char *state;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+hp:")) != -1) {
		if (opt == 'p')
			provider = optarg;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (argc - optind > 1)
		usage_die(usage);
	state = place_state();
	if (optind < argc)
		one(state, argv[optind], &out);
	else
		all(state, provider, &out);
	puts(buf_str(&out));
	stdout_done();
	return EXIT_OK;
}
