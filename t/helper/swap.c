/* SPDX-License-Identifier: MIT */
/* swap A B: exchanges two names until it is killed. */
#include <stdio.h>

#include <fcntl.h>

int
main(int argc, char **argv)
{
	if (argc != 3)
		return 100;
	while (renameat2(
		   AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) == 0)
		;
	perror("swap");
	return 111;
}
