/* SPDX-License-Identifier: MIT */
/*
 * sb-conf: write the configuration that commands read, from YAML. Shape: sink.
 *
 *   1. Read the document, and lay each override over it.
 *   2. Look at all that it says, by the table of keys, for one who reads it.
 *   3. Under a lock: remove what killed runs left; write all keys with their
 *      values to the file conf of the store, aside, synced and renamed.
 *
 * It is the only program that reads YAML. Where anything is wrong the file
 * stays as it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "conf.h"
#include "confcheck.h"
#include "confdoc.h"
#include "confkeys.h"
#include "conftable.h"
#include "confwalk.h"
#include "err.h"
#include "io.h"
#include "lock.h"
#include "path.h"
#include "stage.h"
#include "store.h"
#include "ytree.h"

static const char usage[] = "sb-conf [-cDp] [-d dir] [-e key] [-o file] ... "
			    "[-r role] [file]";

#define LOCK_NAME ".conf.lock"

enum {
	LOCK_MS = 30000
};

static const char over_suffix[] = ".test.yml";

static const struct option options[] = {
	{ "check", no_argument, NULL, 'c' },
	{ "defaults", no_argument, NULL, 'D' },
	{ "directory", required_argument, NULL, 'd' },
	{ "explain", required_argument, NULL, 'e' },
	{ "help", no_argument, NULL, 'h' },
	{ "override", required_argument, NULL, 'o' },
	{ "print", no_argument, NULL, 'p' },
	{ "role", required_argument, NULL, 'r' },
	{ NULL, 0, NULL, 0 },
};

static struct ynode *
parse(const char *name, int fd)
{
	struct buf text = BUF_INIT, why = BUF_INIT;
	struct ynode *root;

	if (io_read_buf(fd, &text, YTREE_BYTES_MAX) == -1) {
		if (errno == EFBIG)
			die(EXIT_USAGE, "%s: more than %d bytes", name,
			    YTREE_BYTES_MAX);
		die_sys("unable to read %s", name);
	}
	root = ytree_parse(name, buf_str(&text), text.len, &why);
	if (!root)
		die(EXIT_USAGE, "%s", buf_str(&why));
	return root;
}

static int
open_file(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	if (fd == -1)
		die_sys("unable to open %s", name);
	return fd;
}

static char *
real_path(const char *name, int fd)
{
	char *path = path_of_fd(fd);

	if (!path)
		die_sys("unable to find out where %s is", name);
	return path;
}

static void
refuse_over(const char *name, const char *why)
{
	die(EXIT_USAGE, "%s: an override %s", name, why);
}

/* Only what is meant as one is laid over a document. */
static void
check_over(const char *base, int basefd, const char *name, int fd)
{
	char *dir = real_path(base, basefd), *path = real_path(name, fd);
	const size_t n = strlen(path), suffix = sizeof over_suffix - 1;
	struct stat a, b;

	if (fstat(basefd, &a) == -1 || fstat(fd, &b) == -1)
		die_sys("unable to look at %s", name);
	if (a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		refuse_over(name, "is another file than what it is laid over");
	if (n < suffix || strcmp(path + n - suffix, over_suffix) != 0)
		refuse_over(name, "has a name that ends in .test.yml");
	*(strrchr(dir, '/') + 1) = '\0';
	if (strncmp(path, dir, strlen(dir)) != 0)
		refuse_over(name,
		    "lies in the directory of what it is laid over, or below");
	free(dir);
	free(path);
}

static struct ynode *
lay_over(struct ynode *root, const char *base, int basefd, const char *name)
{
	int fd = open_file(name);
	struct ynode *over;

	check_over(base, basefd, name, fd);
	over = parse(name, fd);
	if (root->kind != YKIND_MAP)
		die(EXIT_USAGE, "%s: line %zu: %s instead of a mapping",
		    root->file, root->line, ytree_kind_name(root->kind));
	if (over->kind != YKIND_MAP)
		die(EXIT_USAGE, "%s: line %zu: %s instead of a mapping", name,
		    over->line, ytree_kind_name(over->kind));
	ytree_merge(root, over);
	io_drop(&fd);
	return root;
}

static struct ynode *
read_files(const char *base, const struct names *overs)
{
	const bool in = strcmp(base, "-") == 0;
	int fd = in ? STDIN_FILENO : open_file(base);
	struct ynode *root = parse(in ? "standard input" : base, fd);

	for (size_t i = 0; i < overs->n; i++)
		root = lay_over(root, base, fd, overs->name[i]);
	return root;
}

/* What the environment says about a gateway stands above the document. */
static void
read_environment(struct confdoc *doc)
{
	static const char variable[] = "SANDBOX_GATEWAY_SOCKET";
	const char *value = getenv(variable);
	struct buf why = BUF_INIT;

	if (!doc->role->listens || !value ||
	    value[strspn(value, " \t\n")] == '\0')
		return;
	if (!confdoc_set(doc, "gateway.bind_addr", value, &why))
		die(EXIT_USAGE, "%s: %s", variable, buf_str(&why));
}

static void
read_document(
    struct confdoc *doc, const struct conf_role *role, const struct ynode *root)
{
	struct buf why = BUF_INIT;
	bool good;

	*doc = (struct confdoc){ .role = role };
	good = confwalk(doc, root, &why) && confcheck(doc, root, &why);

	for (size_t i = 0; i < doc->warnings.n; i++)
		warn_msg("%s", doc->warnings.name[i]);
	if (!good)
		die(EXIT_USAGE, "%s", buf_str(&why));
	read_environment(doc);
}

/* The flat file, which its reader accepts. */
static void
compose(const struct confdoc *doc, struct buf *text)
{
	struct buf why = BUF_INIT;
	struct conf conf;
	char *cwd = getcwd(NULL, 0);

	if (!cwd)
		die_sys("unable to find out the working directory");
	buf_adds(text,
	    "# Written by sb-conf(1); what can be said here: sb-conf(5).\n");
	confdoc_write(doc, cwd, text);
	free(cwd);
	if (text->len > CONF_BYTES_MAX)
		die(EXIT_USAGE, "conf: more than %d bytes", CONF_BYTES_MAX);
	if (!conf_parse(buf_str(text), text->len, &conf, &why))
		die(EXIT_USAGE, "%s", buf_str(&why));
	conf_release(&conf);
}

/* What a killed run left; nobody else is at work here. */
static void
sweep(int dirfd)
{
	static const char before[] = "." CONF_NAME ".", after[] = ".tmp";
	struct names v = NAMES_INIT;

	if (names_read(dirfd, &v) == -1)
		return;
	for (size_t i = 0; i < v.n; i++) {
		const char *name = v.name[i];
		size_t n = strlen(name);

		if (n > sizeof before + sizeof after &&
		    strncmp(name, before, sizeof before - 1) == 0 &&
		    strcmp(name + n - (sizeof after - 1), after) == 0)
			unlinkat(dirfd, name, 0);
	}
	names_release(&v);
}

static void
write_file(const char *dir, const struct buf *text)
{
	int fd =
	    dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : store_open();
	int lock;

	if (fd == -1)
		die_sys("unable to open %s", dir);
	if (!dir)
		dir = store_path();
	lock = lock_take(fd, LOCK_NAME, true, LOCK_MS);
	if (lock == -1 && errno == ETIMEDOUT)
		die(EXIT_TIMEOUT, "%s/%s: held for %d s", dir, LOCK_NAME,
		    LOCK_MS / 1000);
	if (lock == -1)
		die_sys("unable to lock %s/%s", dir, LOCK_NAME);
	sweep(fd);
	if (stage_file(fd, CONF_NAME, text->data, text->len, 0600) == -1)
		die_sys("unable to write %s/%s", dir, CONF_NAME);
	io_drop(&lock);
	io_drop(&fd);
}

static void
explain_default(const struct conf_key *k)
{
	const bool map = confkey_is_map(k);
	const char *p = k->fallback;

	if (!p) {
		puts(map ? "  default: no names" : "  default: none");
		return;
	}
	fputs("  default:", stdout);
	if (!map && !(k->flags & CONF_LIST)) {
		printf(" %s\n", p);
		return;
	}
	for (; *p; p += strlen(p) + 1) {
		if (map) {
			printf(" %s=", p);
			p += strlen(p) + 1;
		} else {
			putchar(' ');
		}
		fputs(p, stdout);
	}
	putchar('\n');
}

static void
explain_key(const struct conf_key *k)
{
	struct buf what = BUF_INIT;

	confkey_describe(k, &what);
	printf("%s: %s\n  %s\n", k->name, buf_str(&what), k->help);
	explain_default(k);
	if (k->flags & CONF_REQUIRED)
		puts("  A document that has its section must have it.");
	if (k->flags & CONF_NULL)
		puts("  May be null: as if it were not there.");
	if (k->old)
		printf("  Old name: %s%s\n", k->old,
		    k->old_times == 2 ? ", of half as much" : "");
	if (k->flags & CONF_IDLE)
		puts("  Checked, and without effect.");
	else if (!confkey_is_read(k))
		puts("  No command of this version reads it.");
	buf_release(&what);
}

/* One key, by whatever name, or all of a group. */
static void
explain(const char *name)
{
	const size_t n = strlen(name);
	const struct conf_key *k = confkey_exact(name);
	const char *item;
	size_t len;
	bool any = false;

	if (!k)
		k = confkey_find(name, &item, &len);
	if (!k)
		k = confkey_old(name);
	if (k) {
		explain_key(k);
		return;
	}
	for (size_t i = 0; i < conf_nkeys; i++) {
		if (strncmp(conf_keys[i].name, name, n) != 0 ||
		    conf_keys[i].name[n] != '.')
			continue;
		explain_key(&conf_keys[i]);
		any = true;
	}
	if (!any)
		die(EXIT_USAGE, "%s: no such key: sb-conf -D shows them all",
		    name);
}

/* How many components, each with its dot, two names begin with alike. */
static size_t
common(const char *a, const char *b)
{
	size_t depth = 0;

	for (; *a && *a == *b; a++, b++)
		depth += *a == '.';
	return depth;
}

/* A line of the document; what is in a mapping that is null is a comment. */
static void
indent(size_t depth, bool comment)
{
	printf("%s%*s", comment ? "# " : "", (int)(2 * depth), "");
}

static void
print_value(const struct conf_key *k)
{
	if (!k->fallback)
		puts(k->flags & CONF_NULL ? "null" : "\"\"");
	else if (k->flags & CONF_LIST)
		printf("[%s]\n", k->fallback);
	else
		printf("%s\n", k->fallback);
}

/* The mappings that k is in, but for those that the key before it is in. */
static size_t
print_groups(const struct conf_key *k, const char *before)
{
	const char *p = k->name;
	const bool in_docker = strncmp(p, "manager.docker.", 15) == 0;
	size_t depth = 0, known = common(k->name, before);

	for (;; p += strcspn(p, ".") + 1, depth++) {
		const int n = (int)strcspn(p, ".");

		if (p[n] == '\0')
			return depth;
		if (depth < known)
			continue;
		if (in_docker && depth == 1)
			puts("  docker: null");
		indent(depth, in_docker && depth > 0);
		printf("%.*s:\n", n, p);
	}
}

/* The rows of profiles, by profile: each is a mapping of its own. */
static void
print_profiles(const struct conf_key *first, size_t rows)
{
	const char *profile = first->fallback;

	while (*profile) {
		indent(3, true);
		printf("%s:\n", profile);
		for (size_t i = 0; i < rows; i++) {
			const char *p = first[i].fallback;

			while (strcmp(p, profile) != 0) {
				p += strlen(p) + 1;
				p += strlen(p) + 1;
			}
			indent(4, true);
			printf("%s: %s\n", strrchr(first[i].name, '.') + 1,
			    p + strlen(p) + 1);
		}
		profile += strlen(profile) + 1;
		profile += strlen(profile) + 1;
	}
}

/* All keys with their defaults, as a document that can be changed and used. */
static void
print_defaults(void)
{
	static const char profiles[] = "manager.docker.resource_profiles.";
	const char *before = "";

	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];
		const bool comment =
		    strncmp(k->name, "manager.docker.", 15) == 0;
		size_t rows = 0, depth;

		while (i + rows < conf_nkeys &&
		    strncmp(k[rows].name, profiles, sizeof profiles - 1) == 0)
			rows++;
		if (rows > 0) {
			indent(2, true);
			puts("resource_profiles:");
			print_profiles(k, rows);
			i += rows - 1;
			before = k->name;
			continue;
		}
		if (strcmp(k->name, "manager.docker.container_env.*") == 0) {
			indent(2, true);
			puts("container_env: {}");
			continue;
		}
		depth = print_groups(k, before);
		indent(depth, comment);
		printf("# %s\n", k->help);
		indent(depth, comment);
		printf("%s: ", strrchr(k->name, '.') + 1);
		print_value(k);
		before = k->name;
	}
}

int
main(int argc, char **argv)
{
	const struct conf_role *role = conf_role_find("all");
	const char *dir = NULL, *key = NULL;
	struct names overs = NAMES_INIT;
	struct buf text = BUF_INIT;
	struct confdoc doc;
	int opt, mode = 0, modes = 0;
	bool more = false;

	err_init();
	while ((opt = getopt_long(
		    argc, argv, "+cDd:e:ho:pr:", options, NULL)) != -1) {
		switch (opt) {
		case 'e':
			key = optarg;
			/* FALLTHROUGH */
		case 'c':
		case 'D':
		case 'p':
			mode = opt;
			modes++;
			continue;
		case 'd':
			dir = optarg;
			continue;
		case 'o':
			names_add(&overs, optarg);
			more = true;
			continue;
		case 'r':
			role = conf_role_find(optarg);
			if (!role)
				die(EXIT_USAGE,
				    "%s: no role: all, daemon, docker or "
				    "gateway",
				    optarg);
			more = true;
			continue;
		case 'h':
			usage_help(usage);
		}
		usage_die(usage);
	}
	if (modes > 1 || (dir && mode) ||
	    (mode == 'D' || mode == 'e' ? more || optind != argc
					: optind + 1 != argc))
		usage_die(usage);
	if (overs.n > 0 && strcmp(argv[optind], "-") == 0)
		die(EXIT_USAGE,
		    "an override is laid over a file, not over standard input");

	switch (mode) {
	case 'D':
		print_defaults();
		break;
	case 'e':
		explain(key);
		break;
	default:
		read_document(&doc, role, read_files(argv[optind], &overs));
		compose(&doc, &text);
		if (mode == 'p')
			fwrite(text.data, 1, text.len, stdout);
		else if (mode == 0)
			write_file(dir, &text);
	}
	stdout_done();
	return EXIT_OK;
}
