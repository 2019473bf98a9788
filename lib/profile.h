/* SPDX-License-Identifier: MIT */
/*
 * What a sandbox may use: the profile that manager.local.resource_profile of
 * the configuration in the state directory names.
 */
#ifndef SB_PROFILE_H
#define SB_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"

struct profile {
	struct buf name;
	uint64_t nano_cpus, memory_high, memory_max, pids_max;
	uint64_t pids_reserve; /* of these, kept back for services */
	bool heavy; /* the services are those for builds */
	bool separate;
};

#define PROFILE_INIT { .name = BUF_INIT }

/*
 * 1; 0 when the configuration names none. -1 with errno; EINVAL: why says what
 * is wrong with it. Caller frees with profile_release.
 */
int profile_read(const char *state, struct profile *p, struct buf *why);
void profile_release(struct profile *p);

/* Appends the member resource_profile of a record. */
void profile_out(struct buf *b, const struct profile *p);

#endif
