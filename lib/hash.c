/* SPDX-License-Identifier: MIT */
/*
 * The one-shot family of libcrypto, not EVP: fetching a digest through EVP
 * loads providers and configuration at every start, which costs more than
 * hashing what a small command hashes.
 */
#include "hash.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void
hash_init(struct hash *h)
{
	SHA256_Init(&h->ctx);
}

void
hash_add(struct hash *h, const void *p, size_t n)
{
	if (n > 0)
		SHA256_Update(&h->ctx, p, n);
}

void
hash_adds0(struct hash *h, const char *s)
{
	hash_add(h, s, strlen(s) + 1);
}

void
hash_raw(struct hash *h, unsigned char out[32])
{
	SHA256_Final(out, &h->ctx);
}

void
hash_to_hex(const unsigned char raw[32], char hex[HASH_HEX + 1])
{
	static const char digit[] = "0123456789abcdef";

	for (size_t i = 0; i < 32; i++) {
		hex[2 * i] = digit[raw[i] >> 4];
		hex[2 * i + 1] = digit[raw[i] & 15];
	}
	hex[HASH_HEX] = '\0';
}

void
hash_hex(struct hash *h, char hex[HASH_HEX + 1])
{
	unsigned char raw[32];

	hash_raw(h, raw);
	hash_to_hex(raw, hex);
}

off_t
hash_add_fd(struct hash *h, int fd)
{
	static char data[1 << 17];
	off_t at = 0;

	for (;;) {
		ssize_t n = pread(fd, data, sizeof data, at);

		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return -1;
		if (n == 0)
			return at;
		hash_add(h, data, (size_t)n);
		at += n;
	}
}
