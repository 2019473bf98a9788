/* SPDX-License-Identifier: MIT */
/*
 * Spans and events: what was done, how long it took and how it ended, one line
 * of JSON each, sb-event(5). They are an account for people. Nothing here can
 * fail, wait or print; what cannot be written is dropped and counted.
 *
 * A trace is handed down in the environment: SB_TRACE names it, SB_SPAN is the
 * span around the program. A program that finds none and begins a span begins
 * a trace. Here both are set for the programs that are started inside a span.
 *
 * Lines are kept until the program ends, in whatever way but by a signal, and
 * are then appended all at once. Spans that are open at that moment end with
 * it: by exit code 0 they are completed. So of most commands it is enough that
 * they begin theirs, before they register what is to be done at exit.
 *
 * A forked child inherits what is open as the place where its own spans belong,
 * and nothing of what is not written yet. If it ends by _exit(2) it calls
 * event_leave before.
 */
#ifndef SB_EVENT_H
#define SB_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "path.h"

/* How a span ended, when not well. */
#define EVENT_ERROR     "error"
#define EVENT_TIMED_OUT "timed_out"
#define EVENT_CANCELLED "cancelled"

enum {
	EVENT_TRACE_MAX = 256
};

/* A place in a trace, which can be kept for later; "": none. */
struct event_place {
	char trace[EVENT_TRACE_MAX + 1];
	char span[ID_MAX + 1];
};

/* One that is open. NULL, when nothing is written, is one for all below. */
struct event_span;

/* Opens a span inside the one that was opened last. name: a literal. */
struct event_span *event_begin(const char *name);

/*
 * Where its attributes go, with out.h: out_num(event_attrs(s), "revision", 7).
 * Borrowed, until it ends.
 */
struct buf *event_attrs(struct event_span *s);

/* As if it had never been begun: what is inside of it belongs nowhere. */
void event_drop(struct event_span *s);

/* Ends it. status: EVENT_*, or NULL: completed. Both free it. */
void event_end(struct event_span *s, const char *status);

/* The status that an exit code stands for: NULL for 0. */
const char *event_status(int code);

/* The span that was opened last and is open, or NULL. */
struct event_span *event_open(void);

/* Its beginning was so long ago. */
void event_began(struct event_span *s, uint64_t ns_ago);

/* Where what begins now belongs. */
void event_where(struct event_place *out);

/*
 * From now on it belongs there, as if we had been started there. While a span
 * is open nothing happens: false, unless that is in this trace. False also when
 * nothing is written.
 */
bool event_move(const struct event_place *p);

/*
 * An event, which belongs to the span that was opened last. attrs: members, or
 * NULL; dropped where there is no trace.
 */
void event_add(const char *name, const struct buf *attrs);

/* The events lease.acquired and lease.released. */
void event_lease(const char *name, uint64_t revision);

/*
 * Opens the directory of the log; make: makes it, if it is missing, in a store.
 * -1 with errno; ENOENT also where none is named.
 */
int event_dir(bool make);

/* What the log of the store has lost, in lines, since it is there. */
struct event_losses {
	uint64_t storage; /* dropped: could not be written at once */
	uint64_t oversized; /* dropped: too long */
	uint64_t truncated; /* written without their attributes */
};

/* -1 with errno; all 0 where there is no log yet. */
int event_losses(struct event_losses *out);

/* Writes what is kept, for who lives on. */
void event_flush(void);

/* What happens at exit: ends what is open, and flushes. */
void event_leave(int code);

#endif
