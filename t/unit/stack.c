/* SPDX-License-Identifier: MIT */
/* The manifest: text, what is refused, root hashes; and leases. */
#include "stack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "path.h"
#include "stage.h"

#include "tap.h"

static const char two[] = "{\n"
			  "  \"layers\": [\n"
			  "    {\n"
			  "      \"layer_id\": \"L000002-000000d8\",\n"
			  "      \"path\": \"layers/L000002-000000d8\"\n"
			  "    },\n"
			  "    {\n"
			  "      \"layer_id\": \"B000001-base\",\n"
			  "      \"path\": \"base/B000001-base\"\n"
			  "    }\n"
			  "  ],\n"
			  "  \"schema_version\": 1,\n"
			  "  \"version\": 2\n"
			  "}";

static void
test_text(void)
{
	struct manifest m, n = MANIFEST_INIT;
	struct buf b = BUF_INIT;
	const char *why;

	ok(manifest_parse(two, sizeof two - 1, &m, &why) == 0 &&
		m.version == 2 && m.n == 2 &&
		strcmp(m.id[1], "B000001-base") == 0 &&
		strcmp(m.path[1], "base/B000001-base") == 0,
	    "a manifest is read");
	ok(manifest_has(&m, "B000001-base") && !manifest_has(&m, "B000001"),
	    "an id is found");
	manifest_format(&m, &b);
	ok(b.len == sizeof two - 1 && strcmp(b.data, two) == 0,
	    "and written, byte for byte");
	manifest_add(&n, "L000002-000000d8", NULL);
	ok(!manifest_equal_layers(&m, &n), "fewer layers are not equal");
	manifest_add(&n, "B000001-base", "base/B000001-base");
	ok(manifest_equal_layers(&m, &n), "versions do not count");
	manifest_release(&m);
	manifest_release(&n);
	buf_release(&b);
	manifest_format(&m, &b);
	ok(strcmp(b.data,
	       "{\n  \"layers\": [],\n  \"schema_version\": 1,\n"
	       "  \"version\": 0\n}") == 0,
	    "an empty manifest");
	buf_release(&b);
}

#define ONE(member) \
	"{\"layers\":[{" member "}],\"schema_version\":1,\"version\":1}"
#define PATH(path) ONE("\"layer_id\":\"L1\",\"path\":\"" path "\"")

static void
test_refused(void)
{
	static const struct {
		const char *text, *why; /* NULL: good */
	} v[] = {
		{ "{\"layers\":[],\"version\":0}", NULL },
		{ "{\"version\":3,\"layers\":[],\"x\":{}}", NULL },
		{ PATH("layers/L1"), NULL },
		{ PATH("a..b/..c"), NULL },
		{ "", "" },
		{ "{", "" },
		{ "[]", "" },
		{ "{\"layers\":[]}", "version" },
		{ "{\"version\":1}", "layers" },
		{ "{\"layers\":{},\"version\":1}", "layers" },
		{ "{\"layers\":[],\"version\":-1}", "version" },
		{ "{\"layers\":[],\"version\":1.0}", "version" },
		{ "{\"layers\":[],\"version\":1,\"schema_version\":2}",
		    "schema_version" },
		{ "{\"layers\":[],\"version\":1,\"schema_version\":0}",
		    "schema_version" },
		{ "{\"layers\":[],\"version\":1,\"schema_version\":\"1\"}",
		    "schema_version" },
		{ PATH(""), "layer path" },
		{ PATH("../outside"), "layer path" },
		{ PATH("a/.."), "layer path" },
		{ PATH("a/../b"), "layer path" },
		{ PATH("/abs/layer"), "layer path" },
		{ PATH("a\\u0000b"), "layer path" },
		{ ONE("\"layer_id\":\"L1\""), "layer path" },
		{ ONE("\"layer_id\":\"L1\",\"path\":1"), "layer path" },
		{ ONE("\"path\":\"layers/L1\""), "layer_id" },
		{ ONE("\"layer_id\":\"\",\"path\":\"x\""), "layer_id" },
		{ ONE("\"layer_id\":\"a/b\",\"path\":\"x\""), "layer_id" },
		{ ONE("\"layer_id\":\"..\",\"path\":\"x\""), "layer_id" },
		{ "{\"layers\":[1],\"version\":1}", "layer_id" },
		{ "{\"layers\":[],\"version\":1} x", "" },
	};

	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		const char *why = NULL;
		struct manifest m;
		int rc = manifest_parse(v[i].text, strlen(v[i].text), &m, &why);
		bool good = v[i].why ? rc == -1 && errno == EINVAL && why &&
			strstr(why, v[i].why)
				     : rc == 0;

		if (!ok(good, v[i].why ? "no manifest" : "a manifest"))
			printf("# %s: %s\n", v[i].text, why ? why : "");
		manifest_release(&m);
	}
}

static void
root_hash(const char *const *id, const char *want, const char *what)
{
	struct manifest m = MANIFEST_INIT;
	char hex[HASH_HEX + 1];

	for (; *id; id++)
		manifest_add(&m, *id, NULL);
	m.version = 77;
	manifest_root_hash(&m, hex);
	if (!ok(strcmp(hex, want) == 0, what))
		printf("# is %s\n", hex);
	manifest_release(&m);
}

#define IDS(...)              \
	(const char *const[]) \
	{                     \
		__VA_ARGS__   \
	}

static void
test_hashes(void)
{
	root_hash(IDS(NULL),
	    "c824a9aa7d2e3471306648c6d4baa1abbcb97ff0276181ab4722ca27127cdba0",
	    "no layers");
	root_hash(IDS("L000002-00000001", "B000001-base", NULL),
	    "7f85a09693e78333a6dcde1dd224286077d86eda12507ad700eed77bfd6f1226",
	    "two layers");
	/* From here on computed by another program from the formula. */
	root_hash(IDS("B000001-base", "L000002-00000001", NULL),
	    "fdd95d59252107d5b79ef88c8f1d8176635c5a7add2019cece5fabecad207716",
	    "the other order");
	root_hash(IDS("L\xc3\xa9-\xf0\x9f\x98\x80", NULL),
	    "68d4370e08c52723b2e27dd8f572d3fd17ffe1ded657575d93f8531b4f3feeb9",
	    "an id that is not ASCII");
}

/* ---- on disk ---- */

static int stackfd;

static void
write_file(const char *name, const char *text)
{
	int fd = openat(
	    stackfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd == -1 || io_write_all(fd, text, strlen(text)) == -1)
		exit(111);
	close(fd);
}

static bool
exists(const char *name)
{
	struct stat st;

	return path_lstat(stackfd, name, &st) == 0;
}

static void
test_read(void)
{
	struct manifest m;
	const char *why;

	ok(manifest_read(stackfd, "none", &m, &why) == 0 && m.version == 0 &&
		m.n == 0,
	    "no manifest is an empty one of version 0");
	write_file("m", two);
	ok(manifest_read(stackfd, "m", &m, &why) == 0 && m.version == 2,
	    "a manifest is read from its file");
	manifest_release(&m);
	if (symlinkat("m", stackfd, "link") == -1)
		exit(111);
	ok(manifest_read(stackfd, "link", &m, &why) == -1 && errno == ELOOP,
	    "but not through a link");
}

static void
test_layers(void)
{
	struct buf b = BUF_INIT;
	int fd;

	if (mkdirat(stackfd, "layers", 0700) == -1 ||
	    mkdirat(stackfd, "layers/L1", 0700) == -1 ||
	    mkdirat(stackfd, "layers/B1", 0700) == -1 ||
	    symlinkat("L1", stackfd, "layers/L2") == -1)
		exit(111);
	stack_layer_path(stackfd, "B1", &b);
	ok(strcmp(b.data, "layers/B1") == 0, "a private base is a layer");
	buf_release(&b);
	ok(stack_open_layer(stackfd, "B1") != -1, "and opens");
	ok(stack_open_layer(stackfd, "L1") != -1, "a layer opens");
	ok(stack_open_layer(stackfd, "L2") == -1 &&
		(errno == ELOOP || errno == ENOTDIR),
	    "but not through a link");
	ok(stack_open_layer(stackfd, "L3") == -1 && errno == ENOENT,
	    "what is missing is ENOENT");
	ok(stack_open_layer(stackfd, "../layers") == -1 && errno == EINVAL,
	    "what is no id is EINVAL");

	if (mkdirat(stackfd, "cache", 0700) == -1 ||
	    mkdirat(stackfd, "cache/B1", 0700) == -1 ||
	    symlinkat("cache", stackfd, "base") == -1)
		exit(111);
	stack_layer_path(stackfd, "B1", &b);
	ok(strcmp(b.data, "base/B1") == 0, "a shared base is below base");
	buf_release(&b);
	fd = stack_open_layer(stackfd, "B1");
	ok(fd != -1, "base is followed");
	io_drop(&fd);
	if (unlinkat(stackfd, "base", 0) == -1 ||
	    symlinkat("cache2", stackfd, "base") == -1 ||
	    symlinkat("cache", stackfd, "cache2") == -1)
		exit(111);
	ok(stack_open_layer(stackfd, "B1") == -1 &&
		(errno == ELOOP || errno == ENOTDIR),
	    "but once only");
	if (unlinkat(stackfd, "base", 0) == -1 ||
	    mkdirat(stackfd, "base", 0700) == -1 ||
	    mkdirat(stackfd, "base/B1", 0700) == -1)
		exit(111);
	ok(stack_open_layer(stackfd, "B1") != -1, "base may be a directory");
	if (geteuid() == 0) {
		if (unlinkat(stackfd, "base/B1", AT_REMOVEDIR) == -1 ||
		    unlinkat(stackfd, "base", AT_REMOVEDIR) == -1 ||
		    symlinkat("cache", stackfd, "base") == -1 ||
		    fchownat(stackfd, "cache", 12345, 12345, 0) == -1)
			exit(111);
		ok(stack_open_layer(stackfd, "B1") == -1 && errno == EPERM,
		    "a base of a stranger is not followed");
	}
}

static void
test_leases(void)
{
	struct manifest m;
	const char *why;
	int a, b;

	manifest_parse(two, sizeof two - 1, &m, &why);
	ok(stack_lease(stackfd, "../x", &m) == -1 && errno == EINVAL,
	    "a lease has an id");
	a = stack_lease(stackfd, "one", &m);
	ok(a != -1 && exists("leases/one/manifest"), "a lease is made");
	ok(stack_lease_is_held(stackfd, "one") == 1, "and held");
	ok(stack_lease_is_held(stackfd, "two") == 0, "another is not");
	ok(stack_lease(stackfd, "one", &m) == -1 && errno == EEXIST,
	    "its name is taken");
	ok(exists("leases/one/lock"), "and stays whole");
	ok(stack_lease_add(stackfd, "one", "L7") == 0 &&
		stack_lease_add(stackfd, "one", "L8") == 0,
	    "ids are added");
	ok(stack_lease_add(stackfd, "two", "L7") == -1 && errno == ENOENT,
	    "not to a lease that is not there");
	io_drop(&a);
	ok(stack_lease_is_held(stackfd, "one") == 0,
	    "the lease dies with the descriptor");
	b = stack_lease(stackfd, "one", &m);
	ok(b != -1 && stack_lease_is_held(stackfd, "one") == 1,
	    "a dead lease is replaced");
	ok(!exists("leases/one/added"), "with all that was added");
	ok(stack_lease_drop(stackfd, "one") == 0 && !exists("leases/one"),
	    "a lease is removed");
	ok(stack_lease_drop(stackfd, "one") == 0, "or is not there");
	io_drop(&b);
	manifest_release(&m);
}

static bool
used(int storefd, const char *want, const char *trouble)
{
	struct ids ids = IDS_INIT;
	struct buf b = BUF_INIT;
	const char *why;
	int rc = stack_used(storefd, &ids, &why);
	bool good;

	for (size_t i = 0; i < ids.n; i++)
		buf_addf(&b, "%s%s", i ? " " : "", ids.id[i]);
	good = trouble ? rc == -1 && why && strstr(why, trouble)
		       : rc == 0 && strcmp(buf_str(&b), want) == 0;
	if (!good)
		printf("# is %d %s %s\n", rc, buf_str(&b),
		    rc == -1 && why ? why : "");
	buf_release(&b);
	return good;
}

#define LIST(id) \
	"{\"layers\":[{\"layer_id\":\"" id "\",\"path\":\"x\"}],\"version\":1}"

static void
test_used(int storefd)
{
	struct manifest m = MANIFEST_INIT;
	int lease;

	ok(used(storefd, NULL, "manifest.json is missing"), "no head");
	write_file("manifest.json", "x");
	ok(used(storefd, NULL, "manifest.json is unreadable"), "a bad head");
	write_file("manifest.json", LIST("H"));
	ok(used(storefd, "H", NULL), "head is used");
	if (mkdirat(storefd, "workspace", 0700) == -1 ||
	    mkdirat(storefd, "workspace/s1", 0700) == -1)
		exit(111);
	ok(used(storefd, NULL, "workspace/s1/lease"),
	    "a session without a lease");
	write_file("../workspace/s1/lease", "{\"layers\"");
	ok(used(storefd, NULL, "workspace/s1/lease"), "a bad lease");
	write_file("../workspace/s1/lease", LIST("S"));
	ok(used(storefd, "H S", NULL), "the lease of a parked session");
	if (mkdirat(storefd, "workspace/.new.1", 0700) == -1 ||
	    mkdirat(storefd, "workspace/.end.1", 0700) == -1)
		exit(111);
	ok(used(storefd, "H S", NULL), "sessions that come and go");
	write_file("../workspace/.new.1/lease", LIST("N"));
	write_file("../workspace/.end.1/lease", LIST("E"));
	write_file("../workspace/file", "");
	ok(used(storefd, "H E N S", NULL), "with leases");

	manifest_add(&m, "W", NULL);
	lease = stack_lease(stackfd, "w", &m);
	stack_lease_add(stackfd, "w", "A1");
	stack_lease_add(stackfd, "w", "A2");
	ok(used(storefd, "H E N S W A1 A2", NULL), "live short work");
	write_file("leases/w/manifest", "");
	ok(used(storefd, NULL, "leases/w"), "whose list is bad");
	io_drop(&lease);
	ok(used(storefd, "H E N S", NULL), "dead short work");
	manifest_release(&m);
}

int
main(void)
{
	char top[] = "/tmp/sb-stack.XXXXXX";
	int storefd;

	test_text();
	test_refused();
	test_hashes();
	if (!mkdtemp(top) || chdir(top) == -1 ||
	    mkdir("layer-stack", 0700) == -1)
		exit(111);
	storefd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	stackfd =
	    openat(storefd, "layer-stack", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	test_read();
	test_layers();
	test_leases();
	test_used(storefd);
	if (path_rm_tree(AT_FDCWD, top) == -1)
		exit(111);
	return done();
}
