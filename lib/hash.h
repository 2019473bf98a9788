/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4), printed as 64 lower-case hexadecimal digits. */
#ifndef SB_HASH_H
#define SB_HASH_H

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <stddef.h>
#include <sys/types.h>

#define HASH_HEX 64

struct hash {
	SHA256_CTX ctx; /* private */
};

void hash_init(struct hash *h);
void hash_add(struct hash *h, const void *p, size_t n);

/* String with its NUL: the separator of the layer and base formulas. */
void hash_adds0(struct hash *h, const char *s);

void hash_hex(struct hash *h, char hex[HASH_HEX + 1]);
void hash_raw(struct hash *h, unsigned char out[32]);
void hash_to_hex(const unsigned char raw[32], char hex[HASH_HEX + 1]);

/*
 * Adds everything from fd's start to its end, whatever its offset. Returns
 * the number of bytes, -1 with errno.
 */
off_t hash_add_fd(struct hash *h, int fd);

#endif
