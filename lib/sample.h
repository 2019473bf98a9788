/* SPDX-License-Identifier: MIT */
/*
 * What a box uses: processor, memory, input and output, processes. By its
 * cgroup, of version 2 or 1, where it has one; what that does not say is added
 * up over the processes of its pid namespace. Samples are lines of a log beside
 * that of events, sb-event(5).
 */
#ifndef SB_SAMPLE_H
#define SB_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "conf.h"

enum sample_metric {
	SAMPLE_CPU, /* microseconds */
	SAMPLE_IO_READ, /* bytes; these three only grow */
	SAMPLE_IO_WRITE,
	SAMPLE_MEM, /* bytes */
	SAMPLE_MEM_MAX, /* the same; not known where there is no limit */
	SAMPLE_PIDS, /* threads */
	SAMPLE_METRICS
};

struct sample {
	struct {
		enum sample_source {
			SAMPLE_UNKNOWN,
			SAMPLE_CGROUP = 1,
			SAMPLE_PROC = 2,
			SAMPLE_SILENT = 4 /* a cgroup that had nothing to say */
		} from;
		uint64_t n;
	} value[SAMPLE_METRICS];
	bool unlimited; /* there is no SAMPLE_MEM_MAX */
	struct buf path; /* of the cgroup; empty: it has none */
	struct buf errors; /* why something is unknown; "; " between them */
};

#define SAMPLE_INIT { .unlimited = false }

/* What is known here and now. Caller releases. */
void sample_take(struct sample *s);
void sample_release(struct sample *s);

/*
 * Its parts. The directory of a cgroup of version 2 or 1: of the metrics that
 * are unknown those for which it has a file; controller: only those of one.
 * /proc: what is still unknown, of all processes that it shows.
 */
void sample_cgroup(
    struct sample *s, int dirfd, unsigned version, const char *controller);
void sample_proc(struct sample *s, int procfd);

/* Appends it as a line, without its newline. */
void sample_print(const struct sample *s, struct buf *b);

/* Appends it to the log, where that is wanted; drops it where it cannot. */
void sample_log(const struct sample *s, const struct conf *conf);

/*
 * Appends the newest of the log, as snapshots show it, or "null". -1 with
 * errno, and nothing appended.
 */
int sample_latest(struct buf *out);

#endif
