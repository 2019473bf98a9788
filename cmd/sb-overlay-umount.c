/* SPDX-License-Identifier: MIT */
/*
 * sb-overlay-umount: take away every mount that lies on a directory. Shape:
 * sink. Strict: a mount that is in use stays, and that is said (98).
 */
#include <errno.h>
#include <sys/mount.h>
#include <unistd.h>

#include "err.h"

static const char usage[] = "sb-overlay-umount target";

int
main(int argc, char **argv)
{
	int opt, n = 0;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	while (umount2(argv[optind], UMOUNT_NOFOLLOW) == 0)
		n++;
	if (errno == EBUSY)
		die(EXIT_BUSY, "%s is in use", argv[optind]);
	/* EINVAL: nothing is mounted there (any more). */
	if (errno != EINVAL)
		die_sys("unable to unmount %s", argv[optind]);
	return n > 0 ? EXIT_OK : EXIT_NO;
}
