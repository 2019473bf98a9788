/* SPDX-License-Identifier: MIT */
/*
 * How large a tree is: a walk with a budget, which follows no link and does
 * not leave the file system. Nothing is changed, and nothing kept.
 */
#ifndef SB_MEASURE_H
#define SB_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

struct measure {
	uint64_t nodes; /* left of the budget */
	unsigned depth; /* so many directories below each other are entered */
	/* Results, at least: */
	uint64_t bytes; /* in regular files */
	uint64_t allocated; /* of all entries, on disk */
	bool complete; /* that is all: no budget was used up, no error met */
};

/* Adds what is below the directory, which keeps its offset undefined. */
void measure_tree(int dirfd, struct measure *m);

#endif
