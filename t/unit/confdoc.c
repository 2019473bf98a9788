/* SPDX-License-Identifier: MIT */
/*
 * Documents that were changed at random: none may crash the reader (the
 * sanitizers look on), what is refused is refused with a place, and of what is
 * accepted the flat file is read back with the values that were taken.
 */
#include "confdoc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "confcheck.h"
#include "confkeys.h"
#include "confwalk.h"

#include "tap.h"

enum {
	ROUNDS = 20000
};

static const char document[] =
    "daemon:\n"
    "  server:\n"
    "    socket_path: /run/d.sock\n"
    "    pid_path: \"/run/d.pid\"\n"
    "    worker_threads: 3\n"
    "  http: {forward: {connect_timeout_s: 1.5}}\n"
    "runtime:\n"
    "  workspace:\n"
    "    layer_stack_root: /stack\n"
    "    scratch_root: '/scratch'\n"
    "    setup_timeout_s: 31\n"
    "    exit_grace_s: 0.5\n"
    "    rfc1918_egress: deny\n"
    "  namespace_execution:\n"
    "    scratch_root: /exec\n"
    "  command: {max_active: 7, read_lines_max: 0x100}\n"
    "runner:\n"
    "  mount_mask:\n"
    "    hidden_paths: [/hidden, /other]\n"
    "gateway: {bind_addr: \"[::1]:80\"}\n"
    "manager:\n"
    "  registry_path: ~\n"
    "  docker:\n"
    "    daemon_binary_path: d\n"
    "    daemon_config_yaml_path: /d.yml\n"
    "    resource_profile: a.b\n"
    "    resource_profiles:\n"
    "      a.b: {nano_cpus: 1, memory_high_bytes: 2, memory_max_bytes: 3,\n"
    "        pids_max: 9, daemon_runtime_profile: standard,\n"
    "        separate_workload_cgroup: true}\n"
    "    container_env:\n"
    "      A: |\n"
    "        lines\n"
    "        of text\n"
    "      B: \" \\t\\\"\"\n"
    "observability: {enabled: false, max_file_bytes: 700000}\n"
    "other: [1, {x: y}]\n";

static const char *const pieces[] = { " ", "  ", "\n", "\n  ", ":", ": ", "- ",
	"[", "]", "{", "}", ",", "\"", "'", "|", ">", "&a ", "*a", "!x ", "#",
	"~", "null", "true", "0", "-1", "1e9", ".inf", "99999999999999999999",
	"/", "..", "\\", "\\0", "\t", "%", "@", "\xc3\xa4", "\xff", "\x01",
	"---\n", "a", ".", "*", "?" };

/* xorshift64: the same documents everywhere. */
static uint64_t
draw(size_t below)
{
	static uint64_t x = UINT64_C(88172645463325252);

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return below > 0 ? x % below : 0;
}

/* Puts a piece, or some of the document itself, into the place of some bytes. */
static void
change(struct buf *b)
{
	struct buf new = BUF_INIT;
	size_t at = draw(b->len + 1), n = draw(4) == 0 ? draw(40) : draw(3);

	if (n > b->len - at)
		n = b->len - at;
	buf_add(&new, buf_str(b), at);
	if (draw(3) > 0) {
		buf_adds(&new, pieces[draw(sizeof pieces / sizeof *pieces)]);
	} else {
		size_t from = draw(sizeof document - 1), len = draw(60);

		if (len > sizeof document - 1 - from)
			len = sizeof document - 1 - from;
		buf_add(&new, document + from, len);
	}
	buf_add(&new, buf_str(b) + at + n, b->len - at - n);
	buf_release(b);
	*b = new;
}

/* Are the values that a document gave for lists and maps in the flat file? */
static bool
has_items(const struct confdoc *doc, const struct conf *c)
{
	size_t at[CONF_KEYS] = { 0 };

	for (size_t i = 0; i < doc->n; i++) {
		const struct conf_value *v = &doc->v[i];
		const struct conf_item *it;

		if (!(v->key->flags & CONF_LIST) && !confkey_is_map(v->key))
			continue;
		it = conf_next(c, v->key->which, &at[v->key->which]);
		if (!it || strcmp(it->value, v->value) != 0 ||
		    !strstr(v->name, it->name))
			return false;
	}
	return true;
}

static bool
is_read_back(const struct confdoc *doc)
{
	struct buf text = BUF_INIT, why = BUF_INIT;
	struct conf c;
	bool good;

	confdoc_write(doc, "/cwd", &text);
	good = conf_parse(buf_str(&text), text.len, &c, &why);
	if (good)
		good = has_items(doc, &c);
	if (!good)
		printf("# %s\n", buf_str(&why));
	conf_release(&c);
	buf_release(&text);
	buf_release(&why);
	return good;
}

/* 1: accepted, 0: refused as is right, -1: wrong. */
static int
try_document(const struct buf *b)
{
	struct buf why = BUF_INIT;
	struct confdoc doc = { .role = conf_role_find("all") };
	struct ynode *root = ytree_parse("f", buf_str(b), b->len, &why);
	int rc = 0;

	if (root) {
		bool good =
		    confwalk(&doc, root, &why) && confcheck(&doc, root, &why);

		if (good)
			rc = why.len == 0 && is_read_back(&doc) ? 1 : -1;
		confdoc_release(&doc);
		ytree_free(root);
	}
	if (rc == 0 && strncmp(buf_str(&why), "f: line ", 8) != 0 &&
	    strncmp(buf_str(&why), "manager.docker.resource_profile: ", 33) !=
		0)
		rc = -1;
	if (rc == -1)
		printf("# %s\n%s\n", buf_str(&why), buf_str(b));
	buf_release(&why);
	return rc;
}

int
main(void)
{
	struct buf b = BUF_INIT;
	size_t accepted = 0, refused = 0;
	bool good = true;

	buf_adds(&b, document);
	ok(try_document(&b) == 1, "the document is accepted");
	for (int i = 0; good && i < ROUNDS; i++) {
		int rc;

		buf_cut(&b, 0);
		buf_adds(&b, document);
		for (size_t n = draw(4) == 0 ? 3 : 1; n > 0; n--)
			change(&b);
		rc = try_document(&b);
		accepted += rc == 1;
		refused += rc == 0;
		good = rc != -1;
	}
	ok(good, "documents are refused with a place, or read back");
	ok(accepted > ROUNDS / 40 && refused > ROUNDS / 20,
	    "there were both kinds");
	printf("# %zu accepted, %zu refused\n", accepted, refused);
	buf_release(&b);
	return done();
}
