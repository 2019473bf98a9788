/* SPDX-License-Identifier: MIT */
/*
 * relink NAME TARGET: makes NAME a symbolic link to TARGET, a regular file that
 * says "inside", and so on, each by a rename, until it is killed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	char new[4096];
	int fd;

	if (argc != 3)
		return 100;
	snprintf(new, sizeof new, "%s.new", argv[1]);
	for (;;) {
		if (symlink(argv[2], new) == -1 || rename(new, argv[1]) == -1)
			break;
		fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
		if (fd == -1 || write(fd, "inside\n", 7) != 7 ||
		    close(fd) == -1 || rename(new, argv[1]) == -1)
			break;
	}
	perror("relink");
	return 111;
}
