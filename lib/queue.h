/* SPDX-License-Identifier: MIT */
/*
 * The order of publishers. Each draws a ticket, a file queue/N that it keeps
 * locked; the lowest ticket whose owner lives is at the head. Who is at the
 * head is the only one to move the stack, so nobody loses the race twice.
 */
#ifndef SB_QUEUE_H
#define SB_QUEUE_H

#include <stdint.h>

struct ticket {
	uint64_t number;
	int dirfd; /* of queue/ */
	int fd; /* the lock */
};
#define TICKET_INIT { .dirfd = -1, .fd = -1 }

/* Draws the next number below stackfd, waiting ms for the stack lock. */
int queue_draw(int stackfd, struct ticket *t, int ms);

/*
 * Waits until everybody with a lower number has left or died. ms as in
 * lock.h, for each of them. -1 with ETIMEDOUT or another errno.
 */
int queue_wait(struct ticket *t, int ms);

/* Gives the ticket back. */
void queue_leave(struct ticket *t);

#endif
