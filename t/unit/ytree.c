/* SPDX-License-Identifier: MIT */
/* YAML documents: what they mean, what is refused and in which words. */
#include "ytree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

/* A tree as text: kinds as letters, lines where they are asked for. */
static void
show(const struct ynode *node, struct buf *b)
{
	static const char letter[] = "nbift[{";
	bool map = node->kind == YKIND_MAP;

	buf_addc(b, letter[node->kind]);
	if (node->kind < YKIND_LIST) {
		buf_addf(b, "%s", node->text);
		return;
	}
	for (size_t i = 0; i < node->n; i++) {
		if (i > 0)
			buf_addc(b, map && i % 2 ? ':' : ',');
		show(node->child[i], b);
	}
	buf_addc(b, map ? '}' : ']');
}

static const struct {
	const char *text, *tree;
} good[] = {
	{ "a: 1\nb:\n  c: x\n", "{ta:i1,tb:{tc:tx}}" },
	{ "{\"a\": [1, 2.5, \"3\", true, null]}",
	    "{ta:[i1,f2.5,t3,btrue,nnull]}" },
	{ "# x\n---\na: 1 # y\n...\n# z\n", "{ta:i1}" },
	{ "%YAML 1.1\n---\na: 1\n", "{ta:i1}" },
	{ "\xef\xbb\xbf"
	  "a: \xc3\xa4\n",
	    "{ta:t\xc3\xa4}" },
	{ "a: |\n  x\n  y\nb: >-\n  x\n  y\n", "{ta:tx\ny\n,tb:tx y}" },
	{ "- - 1\n- - {}\n", "[[i1],[{}]]" },
	{ "a:\nb: ~\nc: ''\n", "{ta:n,tb:n~,tc:t}" },
	{ "x", "tx" },
	{ "? a\n: 1\n", "{ta:i1}" },
	{ "[0, -1, +7, 010, 0o17, 0x1F, 1_000, 0b1, '5']",
	    "[i0,i-1,i+7,i010,i0o17,i0x1F,t1_000,t0b1,t5]" },
	{ "[1., .5, 1e3, 1E-3, -2.5e+1, 1e, e1, ., .inf, -.Inf, .nan, -.nan]",
	    "[f1.,f.5,f1e3,f1E-3,f-2.5e+1,t1e,te1,t.,f.inf,f-.Inf,f.nan,"
	    "t-.nan]" },
	{ "[True, FALSE, yes, no, on, off, tRUE, Null, NULL, nil]",
	    "[bTrue,bFALSE,tyes,tno,ton,toff,ttRUE,nNull,nNULL,tnil]" },
	{ "1: a\ntrue: b\n", "{i1:ta,btrue:tb}" },
	{ "<<: 1\n", "{t<<:i1}" },
	{ "a: '*x'\nb: '!y'\n", "{ta:t*x,tb:t!y}" },
};

static const struct {
	const char *text, *why;
} bad[] = {
	{ "", "f: line 1: no document" },
	{ "# nothing\n", "f: line 2: no document" },
	{ "a: 1\n---\nb: 2\n", "f: line 2: a second document" },
	{ "a: 1\n...\nb: 2\n", "f: line 3: did not find expected" },
	{ "a: &x 1\n", "f: line 1: &x: anchors are not accepted" },
	{ "a: &x [1]\n", "f: line 1: &x: anchors are not accepted" },
	{ "a:\n  &x {b: 1}\n", "f: line 2: &x: anchors are not accepted" },
	{ "&x a: 1\n", "f: line 1: &x: anchors are not accepted" },
	{ "a: 1\nb: *x\n",
	    "f: line 2: *x: aliases are not accepted, write it out" },
	{ "*x : 1\n", "f: line 1: *x: aliases are not accepted, write it out" },
	{ "a: !!str 1\n",
	    "f: line 1: tag:yaml.org,2002:str: tags are not accepted" },
	{ "a: !x [1]\n", "f: line 1: !x: tags are not accepted" },
	{ "!x {}\n", "f: line 1: !x: tags are not accepted" },
	{ "a: ! 1\n", "f: line 1: !: tags are not accepted" },
	{ "[a]: 1\n", "f: line 1: a name that is a list or a mapping" },
	{ "? {a: 1}\n: 1\n", "f: line 1: a name that is a list or a mapping" },
	{ "a: 1\nb: 2\na: 3\n", "f: line 3: a: given twice, before on line 1" },
	{ "a:\n  b: 1\n  \"b\": 1\n",
	    "f: line 3: a.b: given twice, before on line 2" },
	{ "a: [{b: 1, b: 1}]\n",
	    "f: line 1: a.b: given twice, before on line 1" },
	{ "a: 1\n b: 2\n", "f: line 2: mapping values are not allowed" },
	{ "a: [1\n", "f: line 2: while parsing a flow sequence: " },
	{ "a: \"x\n", "f: line 2: while scanning a quoted scalar: " },
	{ "a:\n\tb: 1\n", "f: line 2: while scanning for the next token: " },
	{ "a: 1\nb: \xff\n", "f: line 2: not UTF-8" },
	{ "\xff\xfe"
	  "a",
	    "f: line 1: not UTF-8" },
	{ "a: \xed\xa0\x80\n", "f: line 1: not UTF-8" },
	{ "a: 1\nb: \x01\n", "f: line 1: control characters are not allowed" },
	{ "a: @x\n", "f: line 1: while scanning for the next token: " },
};

static struct ynode *
parse(const struct buf *text, struct buf *why)
{
	buf_cut(why, 0);
	return ytree_parse("f", buf_str(text), text->len, why);
}

static void
test_documents(void)
{
	struct buf b = BUF_INIT, why = BUF_INIT;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct ynode *root =
		    ytree_parse("f", good[i].text, strlen(good[i].text), &why);

		buf_cut(&b, 0);
		if (root)
			show(root, &b);
		if (!ok(root && strcmp(buf_str(&b), good[i].tree) == 0,
			"a good document"))
			printf("# %zu: %s %s\n", i, buf_str(&b), buf_str(&why));
		if (root)
			ytree_free(root);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct ynode *root;

		buf_cut(&why, 0);
		root = ytree_parse("f", bad[i].text, strlen(bad[i].text), &why);
		if (!ok(!root &&
			    strncmp(buf_str(&why), bad[i].why,
				strlen(bad[i].why)) == 0,
			"a bad document"))
			printf("# %zu: %s\n", i, buf_str(&why));
	}
	buf_release(&b);
	buf_release(&why);
}

static void
repeat(struct buf *b, const char *s, size_t n)
{
	buf_cut(b, 0);
	for (size_t i = 0; i < n; i++)
		buf_adds(b, s);
}

static void
test_limits(void)
{
	static const char nul[] = "a: 1\0";
	struct buf b = BUF_INIT, why = BUF_INIT;
	struct ynode *root;

	repeat(&b, "[", YTREE_DEPTH_MAX);
	for (int i = 0; i < YTREE_DEPTH_MAX; i++)
		buf_addc(&b, ']');
	root = parse(&b, &why);
	ok(root, "the deepest document");
	if (root)
		ytree_free(root);
	repeat(&b, "[", 500000);
	ok(!parse(&b, &why) &&
		strcmp(buf_str(&why),
		    "f: line 1: more than 32 lists and mappings in each "
		    "other") == 0,
	    "one that is too deep");
	repeat(&b, "{a: ", 250000);
	ok(!parse(&b, &why) && strstr(buf_str(&why), "more than 32"),
	    "mappings that are too deep");
	repeat(&b, "- ", 500000);
	ok(!parse(&b, &why) && strstr(buf_str(&why), "more than 32"),
	    "lists of dashes that are too deep");
	repeat(&b, "? ", 500000);
	ok(!parse(&b, &why), "names of names");
	repeat(&b, "- a\n", YTREE_ENTRIES_MAX);
	root = parse(&b, &why);
	ok(root && root->n == YTREE_ENTRIES_MAX, "the longest list");
	if (root)
		ytree_free(root);
	buf_adds(&b, "- a\n");
	ok(!parse(&b, &why) &&
		strcmp(buf_str(&why), "f: line 4097: more than 4096 entries") ==
		    0,
	    "one entry more");
	buf_cut(&b, 0);
	for (int i = 0; i < YTREE_ENTRIES_MAX; i++)
		buf_addf(&b, "a%d: 1\n", i);
	root = parse(&b, &why);
	ok(root && root->n == 2 * YTREE_ENTRIES_MAX, "the longest mapping");
	if (root)
		ytree_free(root);
	buf_adds(&b, "b: 1\n");
	ok(!parse(&b, &why) && strstr(buf_str(&why), "more than 4096 entries"),
	    "one name more");
	repeat(&b, "#", YTREE_BYTES_MAX - 5);
	buf_adds(&b, "\na: 1");
	root = parse(&b, &why);
	ok(root, "the largest document");
	if (root)
		ytree_free(root);
	buf_addc(&b, '\n');
	ok(!parse(&b, &why) &&
		strcmp(buf_str(&why), "f: more than 1048576 bytes") == 0,
	    "one byte more");
	buf_cut(&why, 0);
	ok(!ytree_parse("f", nul, sizeof nul, &why) && why.len > 0, "a NUL");
	buf_cut(&b, 0);
	buf_adds(&b, "a: \"x\\0y\"\n");
	root = parse(&b, &why);
	ok(root && root->child[1]->len == 3 &&
		memcmp(root->child[1]->text, "x\0y", 4) == 0,
	    "a NUL that is written as one is part of a text");
	if (root)
		ytree_free(root);
	buf_release(&b);
	buf_release(&why);
}

static const struct {
	const char *base, *over, *tree;
} merges[] = {
	{ "a: 1\nb: 2\n", "b: 3\nc: 4\n", "{ta:i1,tb:i3,tc:i4}" },
	{ "a: {b: 1, c: {d: 1, e: 2}}", "a: {c: {e: 3, f: 4}}",
	    "{ta:{tb:i1,tc:{td:i1,te:i3,tf:i4}}}" },
	{ "a: [1, 2]", "a: [3]", "{ta:[i3]}" },
	{ "a: [1, 2]", "a: []", "{ta:[]}" },
	{ "a: {b: 1}", "a: 1", "{ta:i1}" },
	{ "a: {b: 1}", "a: [1]", "{ta:[i1]}" },
	{ "a: {b: 1}", "a: ~", "{ta:n~}" },
	{ "a: {b: 1}", "a: {}", "{ta:{tb:i1}}" },
	{ "a: 1", "a: {b: 1}", "{ta:{tb:i1}}" },
	{ "a: [{b: 1}]", "a: [{c: 1}]", "{ta:[{tc:i1}]}" },
	{ "a: 1", "{}", "{ta:i1}" },
	{ "{}", "a: 1", "{ta:i1}" },
};

static void
test_merges(void)
{
	struct buf b = BUF_INIT, why = BUF_INIT;

	for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
		struct ynode *base = ytree_parse(
		    "f", merges[i].base, strlen(merges[i].base), &why);
		struct ynode *over = ytree_parse(
		    "g", merges[i].over, strlen(merges[i].over), &why);

		if (!base || !over)
			exit(111);
		ytree_merge(base, over);
		buf_cut(&b, 0);
		show(base, &b);
		if (!ok(strcmp(buf_str(&b), merges[i].tree) == 0, "a merge"))
			printf("# %zu: %s\n", i, buf_str(&b));
		ytree_free(base);
	}
	buf_release(&b);
	buf_release(&why);
}

static void
test_places(void)
{
	static const char base[] = "a: 1\nb:\n  c: 2\n  d: 3\n";
	static const char over[] = "\n\n\nb: {d: 4}\n";
	struct buf why = BUF_INIT;
	struct ynode *root = ytree_parse("f", base, sizeof base - 1, &why);
	struct ynode *more = ytree_parse("g", over, sizeof over - 1, &why);
	const struct ynode *b, *c, *d;

	if (!root || !more)
		exit(111);
	ytree_merge(root, more);
	b = ytree_get(root, "b");
	c = b ? ytree_get(b, "c") : NULL;
	d = b ? ytree_get(b, "d") : NULL;
	ok(c && strcmp(c->file, "f") == 0 && c->line == 3,
	    "what was there stays of its file and line");
	ok(d && strcmp(d->file, "g") == 0 && d->line == 4 &&
		strcmp(d->text, "4") == 0,
	    "what was laid over is of the other");
	ok(!ytree_get(root, "c") && !ytree_get(root, "1"),
	    "values are no names");
	ytree_free(root);
	buf_release(&why);
}

int
main(void)
{
	test_documents();
	test_limits();
	test_merges();
	test_places();
	return done();
}
