/* SPDX-License-Identifier: MIT */
#include "profile.h"

#include <errno.h>
#include <string.h>

#include "conf.h"
#include "num.h"
#include "out.h"
#include "place.h"

enum {
	RESERVE_MIN = 8,
	RESERVE_MAX = 32,
	RESERVE_HEAVY = 64
};

/* What the profile says of a row; NULL when it says nothing. */
static const char *
row(const struct conf *c, enum conf_which which, const char *name)
{
	const struct conf_item *item;
	size_t at = 0;

	while ((item = conf_next(c, which, &at)))
		if (strcmp(item->name, name) == 0)
			return item->value;
	return NULL;
}

static bool
number(
    const struct conf *c, enum conf_which which, const char *name, uint64_t *to)
{
	const char *s = row(c, which, name);

	return s && num_dec(s, 1, INT64_MAX, to);
}

static bool
is(const struct conf *c, enum conf_which which, const char *name,
    const char *word)
{
	const char *s = row(c, which, name);

	return s && strcmp(s, word) == 0;
}

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool
take(struct profile *p, const struct conf *c, const char *name)
{
	uint64_t eighth;

	if (!number(c, CONF_PROFILE_CPUS, name, &p->nano_cpus) ||
	    !number(c, CONF_PROFILE_HIGH, name, &p->memory_high) ||
	    !number(c, CONF_PROFILE_MAX, name, &p->memory_max) ||
	    !number(c, CONF_PROFILE_PIDS, name, &p->pids_max))
		return false;
	buf_adds(&p->name, name);
	p->heavy = is(c, CONF_PROFILE_DAEMON, name, "build-heavy");
	p->separate = is(c, CONF_PROFILE_SEPARATE, name, "true");
	p->memory_high = least(p->memory_high, p->memory_max);
	eighth = p->pids_max / 8;
	p->pids_reserve = least(p->heavy ? RESERVE_HEAVY : RESERVE_MAX,
	    eighth < RESERVE_MIN ? RESERVE_MIN : eighth);
	return p->pids_max > p->pids_reserve;
}

int
profile_read(const char *state, struct profile *p, struct buf *why)
{
	const char *name;
	struct conf conf;
	int rc = 0;

	if (place_conf(state, &conf, why) == -1)
		return -1;
	name = conf_word(&conf, CONF_LOCAL_PROFILE);
	if (name && take(p, &conf, name))
		rc = 1;
	else if (name)
		rc = -1;
	if (rc == -1)
		buf_addf(why,
		    "manager.local.resource_profile: %s is none of the "
		    "resource_profiles, or says too little",
		    name);
	conf_release(&conf);
	if (rc == -1)
		errno = EINVAL;
	return rc;
}

void
profile_release(struct profile *p)
{
	buf_release(&p->name);
}

void
profile_out(struct buf *b, const struct profile *p)
{
	out_key(b, "resource_profile");
	buf_addc(b, '{');
	out_str(b, "name", buf_str(&p->name));
	out_num(b, "nano_cpus", p->nano_cpus);
	out_num(b, "memory_high_bytes", p->memory_high);
	out_num(b, "memory_max_bytes", p->memory_max);
	out_num(b, "pids_max", p->pids_max);
	out_num(b, "workload_memory_high_bytes", p->memory_high);
	out_num(b, "workload_memory_max_bytes", p->memory_high);
	out_num(b, "workload_pids_max", p->pids_max - p->pids_reserve);
	out_num(b, "control_plane_pids_reserve", p->pids_reserve);
	out_str(
	    b, "daemon_runtime_profile", p->heavy ? "build-heavy" : "standard");
	out_bool(b, "separate_workload_cgroup", p->separate);
	buf_addc(b, '}');
}
