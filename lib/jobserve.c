/* SPDX-License-Identifier: MIT */
#include "jobserve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "io.h"
#include "mem.h"

enum {
	STUCK_MS = 2000
};

int
jobserve_open(struct jobserve *s, int dirfd, jobserve_fn *fn, void *arg)
{
	*s = (struct jobserve){ .fn = fn, .arg = arg };
	s->listenfd = jobctl_listen(dirfd);
	return s->listenfd == -1 ? -1 : 0;
}

/* The client whose bytes go next. */
static struct jobserve_client *
feeding(struct jobserve *s)
{
	struct jobserve_client *first = NULL;

	for (size_t i = 0; i < s->n; i++) {
		struct jobserve_client *c = &s->client[i];

		if (c->data && (!first || c->turn < first->turn))
			first = c;
	}
	return first;
}

/* Whose turn it is then has all the time. */
static void
forget_data(struct jobserve *s, struct jobserve_client *c)
{
	if (c == feeding(s))
		s->deadline = clock_ms() + STUCK_MS;
	free(c->data);
	c->data = NULL;
}

static void
answer(struct jobserve *s, struct jobserve_client *c, const char *word)
{
	forget_data(s, c);
	if (send(c->fd, word, strlen(word), MSG_NOSIGNAL | MSG_DONTWAIT) == -1)
		shutdown(c->fd, SHUT_RDWR);
}

static void
drop(struct jobserve *s, size_t i)
{
	forget_data(s, &s->client[i]);
	io_drop(&s->client[i].fd);
	s->client[i] = s->client[--s->n];
}

void
jobserve_drop_all(struct jobserve *s)
{
	while (s->n > 0)
		drop(s, s->n - 1);
}

static void
take(struct jobserve *s)
{
	int fd = accept4(s->listenfd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd == -1)
		return;
	if (s->n == JOBSERVE_CLIENTS) {
		io_drop(&fd);
		return;
	}
	s->client[s->n++] = (struct jobserve_client){ .fd = fd };
}

static void
handle(struct jobserve *s, struct jobserve_client *c, const char *p, size_t n)
{
	const char *word = s->fn((enum jobctl_op)p[0], p + 1, s->arg);

	if (word) {
		answer(s, c, word);
		return;
	}
	if (!feeding(s))
		s->deadline = clock_ms() + STUCK_MS;
	c->data = xmalloc(n);
	memcpy(c->data, p + 1, n - 1);
	c->n = n - 1;
	c->done = 0;
	c->turn = s->turns++;
}

/* False: it went away, or speaks out of turn. */
static bool
hear(struct jobserve *s, struct jobserve_client *c)
{
	char packet[JOBCTL_MAX + 2];
	ssize_t n = recv(c->fd, packet, sizeof packet - 1, MSG_DONTWAIT);

	if (n == -1)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0 || c->data)
		return false;
	packet[n] = '\0';
	handle(s, c, packet, (size_t)n);
	return true;
}

size_t
jobserve_poll(const struct jobserve *s, struct pollfd *p)
{
	p[0] = (struct pollfd){ .fd = s->listenfd, .events = POLLIN };
	for (size_t i = 0; i < s->n; i++)
		p[i + 1] =
		    (struct pollfd){ .fd = s->client[i].fd, .events = POLLIN };
	return s->n + 1;
}

/* From the last: a client that is dropped leaves its place to a later one. */
void
jobserve_handle(struct jobserve *s, const struct pollfd *p, size_t n)
{
	for (size_t i = n - 1; i-- > 0;)
		if (p[i + 1].revents && i < s->n &&
		    s->client[i].fd == p[i + 1].fd && !hear(s, &s->client[i]))
			drop(s, i);
	if (p[0].revents)
		take(s);
}

long
jobserve_due(struct jobserve *s)
{
	return feeding(s) ? s->deadline : 0;
}

void
jobserve_feed(struct jobserve *s, int fd, const char *word)
{
	struct jobserve_client *c = feeding(s);
	ssize_t n;

	if (!c)
		return;
	n = fd == -1 ? -1 : write(fd, c->data + c->done, c->n - c->done);
	if (n == -1) {
		if (fd == -1 || (errno != EAGAIN && errno != EINTR))
			answer(s, c, word);
		return;
	}
	c->done += (size_t)n;
	if (n > 0) {
		s->in_line = c->data[c->done - 1] != '\n';
		s->deadline = clock_ms() + STUCK_MS;
	}
	if (c->done == c->n)
		answer(s, c, JOBCTL_OK);
}

void
jobserve_on_time(struct jobserve *s)
{
	struct jobserve_client *c = feeding(s);

	if (c && clock_ms() >= s->deadline)
		answer(s, c, JOBCTL_STUCK);
}
