/* SPDX-License-Identifier: MIT */
/* mksocket PATH: leaves a unix socket there. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int
main(int argc, char **argv)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd;

	if (argc != 2 || strlen(argv[1]) >= sizeof a.sun_path)
		return 100;
	memcpy(a.sun_path, argv[1], strlen(argv[1]));
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd == -1 || bind(fd, (struct sockaddr *)&a, sizeof a) == -1) {
		perror("mksocket");
		return 111;
	}
	return 0;
}
