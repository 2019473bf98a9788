/* SPDX-License-Identifier: MIT */
/*
 * sb-stat-box: a sandbox at a glance, for who asks its gate. Shape: source; one
 * JSON object: sessions, what runs in them, what it uses, and the stack.
 *
 * It takes no lock and settles nothing. What cannot be read is said in
 * "errors" and makes "availability" partial; the rest is still there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "conf.h"
#include "err.h"
#include "event.h"
#include "io.h"
#include "job.h"
#include "mem.h"
#include "num.h"
#include "out.h"
#include "path.h"
#include "place.h"
#include "sample.h"
#include "session.h"
#include "stackstat.h"
#include "store.h"

static const char usage[] = "sb-stat-box id";

enum {
	COMMAND_MAX = 4096 /* bytes of one that are shown */
};

struct running {
	struct job_meta meta;
	struct buf json; /* of one that runs; empty: it is being finalised */
};

static struct stackstat now = STACKSTAT_INIT;
static struct buf errors = BUF_INIT; /* lines */
static struct running *jobs;
static size_t njobs, cap;

/* ---- what runs ---- */

static void
print_job(const struct job *j, struct buf *b)
{
	struct buf command = BUF_INIT;
	size_t n;

	buf_addc(b, '{');
	out_str(b, "namespace_execution_id", j->id);
	out_str(b, "operation", "exec_command");
	out_str(b, "lifecycle_state", "running");
	if (job_command(j, &command) == 0 &&
	    utf8_is_valid(buf_str(&command), command.len)) {
		n = command.len;
		if (n > COMMAND_MAX) {
			n = COMMAND_MAX;
			/* Not in the middle of a character. */
			while (((unsigned char)command.data[n] & 0xc0) == 0x80)
				n--;
		}
		out_key(b, "command");
		out_string(b, buf_str(&command), n);
	} else {
		out_null(b, "command");
	}
	buf_addc(b, '}');
	buf_release(&command);
}

static void
add_job(const char *id)
{
	enum job_state state;
	struct running r = { .json = BUF_INIT };
	struct job j;

	if (job_open(&j, id) == -1)
		return;
	if (job_meta_read(&j, &r.meta) == 0 && job_state(&j, &state) == 0) {
		if (state == JOB_RUNS)
			print_job(&j, &r.json);
		if (state == JOB_RUNS || state == JOB_ENDING) {
			if (njobs == cap)
				jobs = xgrow(jobs, &cap, sizeof *jobs);
			jobs[njobs++] = r;
		}
	} else if (errno != ENOENT) {
		buf_addf(&errors, "command %s: %s\n", id, strerror(errno));
	}
	job_close(&j);
}

static void
read_jobs(void)
{
	struct names all = NAMES_INIT;
	int fd = store_open();
	struct stat st;
	bool none = path_lstat(fd, "jobs", &st) == -1 && errno == ENOENT;

	io_drop(&fd);
	/* Who lists them makes the directory. */
	if (none)
		return;
	if (job_list(&all) == -1)
		buf_addf(&errors, "commands: %s\n", strerror(errno));
	for (size_t i = 0; i < all.n; i++)
		add_job(all.name[i]);
	names_release(&all);
}

/* ---- sessions ---- */

static const char *
finalization(const struct session *s, bool is_conflicted)
{
	struct stat st;

	for (size_t i = 0; i < njobs; i++)
		if (strcmp(jobs[i].meta.session, s->id) == 0 &&
		    jobs[i].meta.automatic && jobs[i].json.len == 0)
			return "finalizing";
	/* Without an answer of sb-publish in it, it was no conflict. */
	if (is_conflicted && path_lstat(s->dirfd, "conflicted", &st) == 0 &&
	    st.st_size == 0)
		return "finalize_failed";
	return "active";
}

static void
print_session(const struct stackstat_session *of, struct buf *b)
{
	struct session s;
	char hex[HASH_HEX + 1];
	bool conflicted;
	int running;

	if (session_open(&s, of->id) == -1)
		return;
	if (b->data[b->len - 1] != '[')
		buf_addc(b, ',');
	conflicted = session_has(&s, "conflicted");
	running = session_is_running(&s);
	buf_addc(b, '{');
	out_str(b, "workspace_id", s.id);
	out_str(b, "lifecycle_state", "active");
	out_str(b, "finalization_state", finalization(&s, conflicted));
	out_str(b, "network_profile", "shared");
	out_str(b, "finalize_policy",
	    session_has(&s, "auto") ? "publish_then_destroy" : "no_op");
	out_key(b, "layers");
	buf_addc(b, '{');
	if (of->lease.n > 0) {
		manifest_root_hash(&of->lease, hex);
		out_str(b, "base_root_hash", hex);
	} else {
		out_null(b, "base_root_hash");
	}
	stackstat_out(b, "layer_count", of->lease.n > 0, of->lease.n);
	buf_addc(b, '}');
	/* Those of mount, pid and user, of a session that has processes. */
	stackstat_out(b, "namespace_fd_count", running == 1, 3);
	buf_adds(b, ",\"resources\":{\"latest\":null,\"history\":[]}");
	out_key(b, "active_namespace_executions");
	buf_addc(b, '[');
	for (size_t i = 0; i < njobs; i++) {
		if (strcmp(jobs[i].meta.session, s.id) != 0 ||
		    jobs[i].json.len == 0)
			continue;
		if (b->data[b->len - 1] != '[')
			buf_addc(b, ',');
		buf_add(b, jobs[i].json.data, jobs[i].json.len);
	}
	buf_addc(b, ']');
	if (running == -1)
		out_null(b, "running");
	else
		out_bool(b, "running", running == 1);
	if (conflicted)
		out_bool(b, "conflicted", true);
	buf_addc(b, '}');
	session_close(&s);
}

/* ---- who serves ---- */

/*
 * The parent of our parent: the gate that started us lives as long as its
 * request, who started the gate as long as the service.
 */
static uint64_t
server_pid(void)
{
	static const char mark[] = "\nPPid:\t";
	struct buf text = BUF_INIT;
	uint64_t pid = (uint64_t)getppid(), found;
	char path[32], *at;

	snprintf(path, sizeof path, "/proc/%d/status", (int)getppid());
	if (io_read_file_at(-1, path, &text, 65536) == 0) {
		at = strstr(buf_str(&text), mark);
		if (at) {
			at += strlen(mark);
			at[strcspn(at, "\n")] = '\0';
			if (num_dec(at, 1, INT32_MAX, &found))
				pid = found;
		}
	}
	buf_release(&text);
	return pid;
}

static void
print_daemon(const char *id, struct buf *b)
{
	struct event_losses lost;
	char *run = place_run(), *dir = xasprintf("%s/box/%s", run, id);

	if (event_losses(&lost) == -1)
		buf_addf(&errors, "event log: %s\n", strerror(errno));
	out_key(b, "daemon");
	buf_addc(b, '{');
	out_num(b, "daemon_pid", server_pid());
	out_path(b, "runtime_dir", dir);
	out_key(b, "event_store");
	buf_addc(b, '{');
	out_num(b, "dropped_storage", lost.storage);
	out_num(b, "dropped_oversized", lost.oversized);
	out_num(b, "truncated_records", lost.truncated);
	buf_adds(b, "}}");
	free(dir);
	free(run);
}

static void
print_resources(struct buf *b)
{
	out_key(b, "resources");
	buf_adds(b, "{\"latest\":");
	if (sample_latest(b) == -1) {
		buf_addf(&errors, "resources: %s\n", strerror(errno));
		buf_adds(b, "null");
	}
	buf_adds(b, ",\"history\":[]}");
}

/* ---- the stack ---- */

static void
print_stack(struct buf *b)
{
	struct buf why = BUF_INIT;
	struct conf conf;
	uint64_t sum;
	int fd = store_open();
	bool known;

	if (conf_read(fd, &conf, &why) == -1) {
		buf_addf(&errors, "%s\n",
		    why.len > 0 ? buf_str(&why) : strerror(errno));
		conf_default(&conf);
	}
	io_drop(&fd);
	if (stackstat_read(&now, &conf, &why) == -1) {
		buf_addf(&errors, "stack: %s\n", buf_str(&why));
		buf_release(&why);
		return;
	}
	out_key(b, "stack");
	buf_addc(b, '{');
	out_num(b, "layer_count", now.m.n);
	known = stackstat_bytes(&now, &sum);
	stackstat_out(b, "layers_bytes", known, sum);
	known = stackstat_allocated(&now, &sum);
	stackstat_out(b, "layers_allocated_bytes", known, sum);
	stackstat_out(b, "storage_allocated_bytes", now.storage.complete,
	    now.storage.allocated);
	stackstat_out(b, "staging_entry_count", now.has_staging, now.staging);
	out_num(b, "active_leases", now.leases);
	buf_addc(b, '}');
	buf_release(&why);
}

static void
print_errors(struct buf *b)
{
	char *rest = errors.data, *one;

	out_key(b, "errors");
	buf_addc(b, '[');
	while (rest && (one = strsep(&rest, "\n")) && *one) {
		if (b->data[b->len - 1] != '[')
			buf_addc(b, ',');
		if (utf8_is_valid(one, strlen(one)))
			out_string(b, one, strlen(one));
		else
			out_string_ascii(b, one, strlen(one));
	}
	buf_addc(b, ']');
}

int
main(int argc, char **argv)
{
	struct buf tail = BUF_INIT, b = BUF_INIT;
	uint64_t ms;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (argc - optind != 1)
		usage_die(usage);
	if (!id_is_valid(argv[optind]))
		die(EXIT_USAGE, "not an id: %s", argv[optind]);
	ms = job_now() / 1000000;
	stackstat_sessions(&now, &errors);
	read_jobs();
	/* What comes first says what went wrong with what comes behind. */
	print_daemon(argv[optind], &tail);
	print_resources(&tail);
	out_key(&tail, "workspaces");
	buf_addc(&tail, '[');
	for (size_t i = 0; i < now.nsessions; i++)
		print_session(&now.session[i], &tail);
	buf_addc(&tail, ']');
	print_stack(&tail);
	buf_addc(&b, '{');
	out_str(&b, "sandbox_id", argv[optind]);
	out_str(&b, "lifecycle_state", "ready");
	out_str(&b, "availability", errors.len > 0 ? "partial" : "available");
	out_num(&b, "sampled_at_unix_ms", ms);
	print_errors(&b);
	buf_addf(&b, ",%s}", buf_str(&tail));
	puts(b.data);
	stdout_done();
	return EXIT_OK;
}
