/* SPDX-License-Identifier: MIT */
/*
 * Requests: spans of the members, and two hundred thousand damaged lines, of
 * which each is refused with words, or is one that JSON's grammar allows.
 */
#include "request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define TOKEN "_t"

static const char good[] =
    "{\"op\":\"exec_command\",\"request_id\":\"r\\u0000\\ud83d\\ude00\","
    "\"scope\":{\"kind\":\"sandbox\",\"sandbox_id\":\"eos-1\"},"
    "\"args\":{\"cmd\":\"a\\\"b\",\"n\":[1,-2.5e+3,null,true,{}]},"
    "\"_t\":\"secret\",\"_stream_logs\":true}";

static uint64_t seed = 20261130;

static uint32_t
draw(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 32) % n;
}

static void
test_good(void)
{
	struct request r = REQUEST_INIT;
	struct failure f = FAILURE_INIT;

	ok(request_parse(&r, good, sizeof good - 1, TOKEN, &f), "it is parsed");
	ok(json_is(r.token, "\"secret\""), "the token is found");
	ok(r.name == NULL, "and nothing is decoded yet");
	ok(request_decode(&r, &f), "it is decoded");
	ok(strcmp(r.name, "exec_command") == 0, "the name");
	ok(r.id.len == 6 && memcmp(r.id.data, "r\0\xf0\x9f\x98\x80", 6) == 0,
	    "the request's id, with its NUL");
	ok(!r.system && strcmp(buf_str(&r.sandbox_id), "eos-1") == 0,
	    "the scope");
	ok(json_is(
	       r.args, "{\"cmd\":\"a\\\"b\",\"n\":[1,-2.5e+3,null,true,{}]}"),
	    "the arguments are bytes as they came");
	ok(r.progress, "progress is wanted");
	ok(f.kind == NULL, "and nothing failed");
	request_release(&r);
	failure_release(&f);
}

/* A copy in memory of its own, so that a sanitizer sees what is read. */
static char *
damage(size_t *n)
{
	static const char pieces[][12] = { "\"", "\\", "{", "}", "[", "]", ",",
		":", "\\u", "\\ud800", "\xff", "\xc3", "\xe2\x82", "1e", "-",
		"null", "\"op\":", "{\"a\":", "0", " ", "\t", "\n" };
	size_t len = sizeof good - 1, room = len + 64;
	char *p = malloc(room);

	if (!p)
		exit(111);
	memcpy(p, good, len);
	for (uint32_t i = draw(4); i < 4; i++) {
		size_t at = draw((uint32_t)len), cut;
		const char *piece =
		    pieces[draw(sizeof pieces / sizeof *pieces)];

		switch (draw(4)) {
		case 0:
			p[at] = (char)draw(256);
			break;
		case 1:
			cut = draw(8);
			if (at + cut < len) {
				memmove(p + at, p + at + cut, len - at - cut);
				len -= cut;
			}
			break;
		case 2:
			cut = strlen(piece);
			if (len + cut < room) {
				memmove(p + at + cut, p + at, len - at);
				memcpy(p + at, piece, cut);
				len += cut;
			}
			break;
		default:
			len = at + 1;
			break;
		}
	}
	*n = len;
	p = realloc(p, len);
	if (!p)
		exit(111);
	return p;
}

static void
test_damaged(void)
{
	const uint64_t from = seed;
	unsigned refused = 0, taken = 0, silent = 0, broken = 0;

	for (int i = 0; i < 200000; i++) {
		struct request r = REQUEST_INIT;
		struct failure f = FAILURE_INIT;
		struct buf b = BUF_INIT;
		size_t n = 0;
		char *p = damage(&n);

		if (request_parse(&r, p, n, TOKEN, &f) &&
		    request_decode(&r, &f)) {
			taken++;
			silent += f.kind != NULL;
		} else if (!f.kind) {
			silent++;
		} else {
			refused++;
			failure_print(&f, &b);
			broken += !json_is_valid(b.data, b.len, NULL, NULL);
		}
		request_release(&r);
		failure_release(&f);
		buf_release(&b);
		free(p);
	}
	printf(
	    "# seed %" PRIu64 ": %u refused, %u taken\n", from, refused, taken);
	ok(silent == 0, "each is refused with words, or taken");
	ok(broken == 0, "the words are JSON");
	ok(refused > 1000 && taken > 1000, "there are enough of both");
}

int
main(void)
{
	test_good();
	test_damaged();
	return done();
}
