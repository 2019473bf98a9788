/* SPDX-License-Identifier: MIT */
/*
 * Every key of the configuration, once: what it may say, what it says by
 * itself, and what it is for. sb-conf(1) reads YAML by this table, lib/conf the
 * flat file, and sb-conf(5) is compared with it.
 */
#ifndef SB_CONFTABLE_H
#define SB_CONFTABLE_H

#include <stddef.h>
#include <stdint.h>

#define CONF_BILLION UINT64_C(1000000000)

/* Where the page sets no upper bound: what fits everywhere it is used. */
#define CONF_ANY     INT64_MAX
#define CONF_SECONDS (CONF_BILLION * CONF_BILLION)

enum conf_type {
	CONF_NUMBER, /* whole, min to max */
	CONF_DECIMAL, /* up to nine decimals; min and max in billionths */
	CONF_BOOL, /* true or false */
	CONF_WORD, /* one of words */
	CONF_TEXT, /* any but a NUL */
	CONF_PATH, /* absolute */
	CONF_HOSTPATH, /* not blank; relative to where sb-conf was started */
	CONF_ENDPOINT /* where a gateway listens */
};

enum conf_flag {
	CONF_REQUIRED = 1, /* a document with its section has to say it */
	CONF_NULL = 2, /* may be null, which is as if it were absent */
	CONF_NOT_BLANK = 4, /* a text of more than blanks */
	CONF_NOT_ROOT = 8, /* a path other than "/" */
	CONF_EVEN = 16,
	CONF_LIST = 32, /* not empty; in the flat file the key is repeated */
	CONF_IDLE = 64, /* checked and without effect, now and later */
	CONF_UNREAD = 128, /* a list or map that no command reads yet */
	CONF_SCRIPT = 256 /* read by scripts only: sb-up, sandbox-gateway */
};

/*
 * The keys that a command asks for by conf_word() and its like. A key is added
 * here when it gets its reader, and named by its row in the table.
 */
enum conf_which {
	CONF_NONE,
	CONF_IGNORED_CHANGES, /* runtime.layerstack.ignored_changes */
	CONF_PUBLISH_GIT, /* runtime.publish.git */
	CONF_READ_LINES, /* runtime.file.read_lines_default */
	CONF_MAX_OUTPUT, /* runtime.file.max_output_bytes */
	CONF_MAX_EDIT, /* runtime.file.max_edit_bytes */
	CONF_MAX_LIST, /* runtime.file.max_list_entries */
	CONF_MAX_ACTIVE, /* runtime.command.max_active */
	CONF_TRANSCRIPT, /* …namespace_execution.max_transcript_window_bytes */
	CONF_EVENTS, /* observability.enabled */
	CONF_EVENTS_DISK, /* observability.max_disk_bytes */
	CONF_EVENTS_LINE, /* observability.max_line_bytes */
	CONF_SAMPLES, /* observability.resource_stats.enabled */
	CONF_SAMPLES_DISK, /* ….max_disk_bytes */
	CONF_SAMPLES_MS, /* ….sample_interval_ms */
	CONF_MAX_PARKED, /* runtime.workspace.max_parked */
	CONF_PRIVATE, /* runtime.workspace.private_bytes */
	CONF_ROOT, /* runtime.workspace.root */
	CONF_WALK_DEPTH, /* observability.sampling.max_walk_depth */
	CONF_WALK_NODES, /* observability.sampling.max_walk_nodes */
	CONF_LAYER_LIMIT, /* observability.views.layer_delta_default_limit */
	CONF_LAYER_MAX, /* observability.views.layer_delta_max_limit */
	CONF_SNAPSHOT_MANY, /* …observability_snapshot.max_concurrent_requests */
	CONF_SNAPSHOT_MS, /* manager.observability_snapshot.timeout_ms */
	CONF_HIDDEN_PATHS, /* runner.mount_mask.hidden_paths */
	CONF_LOCAL_PROFILE, /* manager.local.resource_profile */
	CONF_WORKSPACE_ROOTS, /* manager.workspace_roots */
	CONF_CONTAINER_ENV, /* manager.docker.container_env.* */
	CONF_PROFILE_DAEMON, /* …resource_profiles.*.daemon_runtime_profile */
	CONF_PROFILE_HIGH, /* ….memory_high_bytes */
	CONF_PROFILE_MAX, /* ….memory_max_bytes */
	CONF_PROFILE_CPUS, /* ….nano_cpus */
	CONF_PROFILE_PIDS, /* ….pids_max */
	CONF_PROFILE_SEPARATE, /* ….separate_workload_cgroup */
	CONF_KEYS
};

struct conf_key {
	const char *name; /* dotted; a component "*" stands for any name */
	enum conf_type type;
	unsigned flags;
	enum conf_which which;
	uint64_t min, max;
	const char *words; /* separated by one blank */
	/*
	 * NULL: none. Where a document must say it: what holds without any. Of
	 * a list and of a "*": strings one after the other, the last of them
	 * empty; of a "*" by turns a name and its value.
	 */
	const char *fallback;
	const char *help; /* a sentence */
	const char *old; /* its name of before, or NULL */
	unsigned old_times; /* 2: by that name it was half as much */
};

/* Sorted bytewise by name. */
extern const struct conf_key conf_keys[];
extern const size_t conf_nkeys;

#endif
