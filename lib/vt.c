/* SPDX-License-Identifier: MIT */
#include "vt.h"

#include <string.h>

#include "buf.h"

enum seq_state {
	GROUND,
	ESCAPE,
	CSI,
	OSC,
	DCS,
	STRING /* SOS, PM, APC */
};

enum {
	SEQ_TOO_LONG = 255
};

/*
 * Unicode 14: categories Mn, Me and Cf (but the soft hyphen and the signs that
 * stand before digits), the medial and final Jamo. Gaps without characters
 * are closed.
 */
static const uint32_t zero[][2] = { { 0x300, 0x36f }, { 0x483, 0x489 },
	{ 0x591, 0x5bd }, { 0x5bf, 0x5bf }, { 0x5c1, 0x5c2 }, { 0x5c4, 0x5c5 },
	{ 0x5c7, 0x5c7 }, { 0x610, 0x61a }, { 0x61c, 0x61c }, { 0x64b, 0x65f },
	{ 0x670, 0x670 }, { 0x6d6, 0x6dc }, { 0x6df, 0x6e4 }, { 0x6e7, 0x6e8 },
	{ 0x6ea, 0x6ed }, { 0x711, 0x711 }, { 0x730, 0x74a }, { 0x7a6, 0x7b0 },
	{ 0x7eb, 0x7f3 }, { 0x7fd, 0x7fd }, { 0x816, 0x819 }, { 0x81b, 0x823 },
	{ 0x825, 0x827 }, { 0x829, 0x82d }, { 0x859, 0x85b }, { 0x898, 0x89f },
	{ 0x8ca, 0x8e1 }, { 0x8e3, 0x902 }, { 0x93a, 0x93a }, { 0x93c, 0x93c },
	{ 0x941, 0x948 }, { 0x94d, 0x94d }, { 0x951, 0x957 }, { 0x962, 0x963 },
	{ 0x981, 0x981 }, { 0x9bc, 0x9bc }, { 0x9c1, 0x9c4 }, { 0x9cd, 0x9cd },
	{ 0x9e2, 0x9e3 }, { 0x9fe, 0xa02 }, { 0xa3c, 0xa3c }, { 0xa41, 0xa51 },
	{ 0xa70, 0xa71 }, { 0xa75, 0xa75 }, { 0xa81, 0xa82 }, { 0xabc, 0xabc },
	{ 0xac1, 0xac8 }, { 0xacd, 0xacd }, { 0xae2, 0xae3 }, { 0xafa, 0xb01 },
	{ 0xb3c, 0xb3c }, { 0xb3f, 0xb3f }, { 0xb41, 0xb44 }, { 0xb4d, 0xb56 },
	{ 0xb62, 0xb63 }, { 0xb82, 0xb82 }, { 0xbc0, 0xbc0 }, { 0xbcd, 0xbcd },
	{ 0xc00, 0xc00 }, { 0xc04, 0xc04 }, { 0xc3c, 0xc3c }, { 0xc3e, 0xc40 },
	{ 0xc46, 0xc56 }, { 0xc62, 0xc63 }, { 0xc81, 0xc81 }, { 0xcbc, 0xcbc },
	{ 0xcbf, 0xcbf }, { 0xcc6, 0xcc6 }, { 0xccc, 0xccd }, { 0xce2, 0xce3 },
	{ 0xd00, 0xd01 }, { 0xd3b, 0xd3c }, { 0xd41, 0xd44 }, { 0xd4d, 0xd4d },
	{ 0xd62, 0xd63 }, { 0xd81, 0xd81 }, { 0xdca, 0xdca }, { 0xdd2, 0xdd6 },
	{ 0xe31, 0xe31 }, { 0xe34, 0xe3a }, { 0xe47, 0xe4e }, { 0xeb1, 0xeb1 },
	{ 0xeb4, 0xebc }, { 0xec8, 0xecd }, { 0xf18, 0xf19 }, { 0xf35, 0xf35 },
	{ 0xf37, 0xf37 }, { 0xf39, 0xf39 }, { 0xf71, 0xf7e }, { 0xf80, 0xf84 },
	{ 0xf86, 0xf87 }, { 0xf8d, 0xfbc }, { 0xfc6, 0xfc6 },
	{ 0x102d, 0x1030 }, { 0x1032, 0x1037 }, { 0x1039, 0x103a },
	{ 0x103d, 0x103e }, { 0x1058, 0x1059 }, { 0x105e, 0x1060 },
	{ 0x1071, 0x1074 }, { 0x1082, 0x1082 }, { 0x1085, 0x1086 },
	{ 0x108d, 0x108d }, { 0x109d, 0x109d }, { 0x1160, 0x11ff },
	{ 0x135d, 0x135f }, { 0x1712, 0x1714 }, { 0x1732, 0x1733 },
	{ 0x1752, 0x1753 }, { 0x1772, 0x1773 }, { 0x17b4, 0x17b5 },
	{ 0x17b7, 0x17bd }, { 0x17c6, 0x17c6 }, { 0x17c9, 0x17d3 },
	{ 0x17dd, 0x17dd }, { 0x180b, 0x180f }, { 0x1885, 0x1886 },
	{ 0x18a9, 0x18a9 }, { 0x1920, 0x1922 }, { 0x1927, 0x1928 },
	{ 0x1932, 0x1932 }, { 0x1939, 0x193b }, { 0x1a17, 0x1a18 },
	{ 0x1a1b, 0x1a1b }, { 0x1a56, 0x1a56 }, { 0x1a58, 0x1a60 },
	{ 0x1a62, 0x1a62 }, { 0x1a65, 0x1a6c }, { 0x1a73, 0x1a7f },
	{ 0x1ab0, 0x1b03 }, { 0x1b34, 0x1b34 }, { 0x1b36, 0x1b3a },
	{ 0x1b3c, 0x1b3c }, { 0x1b42, 0x1b42 }, { 0x1b6b, 0x1b73 },
	{ 0x1b80, 0x1b81 }, { 0x1ba2, 0x1ba5 }, { 0x1ba8, 0x1ba9 },
	{ 0x1bab, 0x1bad }, { 0x1be6, 0x1be6 }, { 0x1be8, 0x1be9 },
	{ 0x1bed, 0x1bed }, { 0x1bef, 0x1bf1 }, { 0x1c2c, 0x1c33 },
	{ 0x1c36, 0x1c37 }, { 0x1cd0, 0x1cd2 }, { 0x1cd4, 0x1ce0 },
	{ 0x1ce2, 0x1ce8 }, { 0x1ced, 0x1ced }, { 0x1cf4, 0x1cf4 },
	{ 0x1cf8, 0x1cf9 }, { 0x1dc0, 0x1dff }, { 0x200b, 0x200f },
	{ 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0x20d0, 0x20f0 },
	{ 0x2cef, 0x2cf1 }, { 0x2d7f, 0x2d7f }, { 0x2de0, 0x2dff },
	{ 0x302a, 0x302d }, { 0x3099, 0x309a }, { 0xa66f, 0xa672 },
	{ 0xa674, 0xa67d }, { 0xa69e, 0xa69f }, { 0xa6f0, 0xa6f1 },
	{ 0xa802, 0xa802 }, { 0xa806, 0xa806 }, { 0xa80b, 0xa80b },
	{ 0xa825, 0xa826 }, { 0xa82c, 0xa82c }, { 0xa8c4, 0xa8c5 },
	{ 0xa8e0, 0xa8f1 }, { 0xa8ff, 0xa8ff }, { 0xa926, 0xa92d },
	{ 0xa947, 0xa951 }, { 0xa980, 0xa982 }, { 0xa9b3, 0xa9b3 },
	{ 0xa9b6, 0xa9b9 }, { 0xa9bc, 0xa9bd }, { 0xa9e5, 0xa9e5 },
	{ 0xaa29, 0xaa2e }, { 0xaa31, 0xaa32 }, { 0xaa35, 0xaa36 },
	{ 0xaa43, 0xaa43 }, { 0xaa4c, 0xaa4c }, { 0xaa7c, 0xaa7c },
	{ 0xaab0, 0xaab0 }, { 0xaab2, 0xaab4 }, { 0xaab7, 0xaab8 },
	{ 0xaabe, 0xaabf }, { 0xaac1, 0xaac1 }, { 0xaaec, 0xaaed },
	{ 0xaaf6, 0xaaf6 }, { 0xabe5, 0xabe5 }, { 0xabe8, 0xabe8 },
	{ 0xabed, 0xabed }, { 0xd7b0, 0xd7fb }, { 0xfb1e, 0xfb1e },
	{ 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff },
	{ 0xfff9, 0xfffb }, { 0x101fd, 0x101fd }, { 0x102e0, 0x102e0 },
	{ 0x10376, 0x1037a }, { 0x10a01, 0x10a0f }, { 0x10a38, 0x10a3f },
	{ 0x10ae5, 0x10ae6 }, { 0x10d24, 0x10d27 }, { 0x10eab, 0x10eac },
	{ 0x10f46, 0x10f50 }, { 0x10f82, 0x10f85 }, { 0x11001, 0x11001 },
	{ 0x11038, 0x11046 }, { 0x11070, 0x11070 }, { 0x11073, 0x11074 },
	{ 0x1107f, 0x11081 }, { 0x110b3, 0x110b6 }, { 0x110b9, 0x110ba },
	{ 0x110c2, 0x110c2 }, { 0x11100, 0x11102 }, { 0x11127, 0x1112b },
	{ 0x1112d, 0x11134 }, { 0x11173, 0x11173 }, { 0x11180, 0x11181 },
	{ 0x111b6, 0x111be }, { 0x111c9, 0x111cc }, { 0x111cf, 0x111cf },
	{ 0x1122f, 0x11231 }, { 0x11234, 0x11234 }, { 0x11236, 0x11237 },
	{ 0x1123e, 0x1123e }, { 0x112df, 0x112df }, { 0x112e3, 0x112ea },
	{ 0x11300, 0x11301 }, { 0x1133b, 0x1133c }, { 0x11340, 0x11340 },
	{ 0x11366, 0x11374 }, { 0x11438, 0x1143f }, { 0x11442, 0x11444 },
	{ 0x11446, 0x11446 }, { 0x1145e, 0x1145e }, { 0x114b3, 0x114b8 },
	{ 0x114ba, 0x114ba }, { 0x114bf, 0x114c0 }, { 0x114c2, 0x114c3 },
	{ 0x115b2, 0x115b5 }, { 0x115bc, 0x115bd }, { 0x115bf, 0x115c0 },
	{ 0x115dc, 0x115dd }, { 0x11633, 0x1163a }, { 0x1163d, 0x1163d },
	{ 0x1163f, 0x11640 }, { 0x116ab, 0x116ab }, { 0x116ad, 0x116ad },
	{ 0x116b0, 0x116b5 }, { 0x116b7, 0x116b7 }, { 0x1171d, 0x1171f },
	{ 0x11722, 0x11725 }, { 0x11727, 0x1172b }, { 0x1182f, 0x11837 },
	{ 0x11839, 0x1183a }, { 0x1193b, 0x1193c }, { 0x1193e, 0x1193e },
	{ 0x11943, 0x11943 }, { 0x119d4, 0x119db }, { 0x119e0, 0x119e0 },
	{ 0x11a01, 0x11a0a }, { 0x11a33, 0x11a38 }, { 0x11a3b, 0x11a3e },
	{ 0x11a47, 0x11a47 }, { 0x11a51, 0x11a56 }, { 0x11a59, 0x11a5b },
	{ 0x11a8a, 0x11a96 }, { 0x11a98, 0x11a99 }, { 0x11c30, 0x11c3d },
	{ 0x11c3f, 0x11c3f }, { 0x11c92, 0x11ca7 }, { 0x11caa, 0x11cb0 },
	{ 0x11cb2, 0x11cb3 }, { 0x11cb5, 0x11cb6 }, { 0x11d31, 0x11d45 },
	{ 0x11d47, 0x11d47 }, { 0x11d90, 0x11d91 }, { 0x11d95, 0x11d95 },
	{ 0x11d97, 0x11d97 }, { 0x11ef3, 0x11ef4 }, { 0x13430, 0x13438 },
	{ 0x16af0, 0x16af4 }, { 0x16b30, 0x16b36 }, { 0x16f4f, 0x16f4f },
	{ 0x16f8f, 0x16f92 }, { 0x16fe4, 0x16fe4 }, { 0x1bc9d, 0x1bc9e },
	{ 0x1bca0, 0x1cf46 }, { 0x1d167, 0x1d169 }, { 0x1d173, 0x1d182 },
	{ 0x1d185, 0x1d18b }, { 0x1d1aa, 0x1d1ad }, { 0x1d242, 0x1d244 },
	{ 0x1da00, 0x1da36 }, { 0x1da3b, 0x1da6c }, { 0x1da75, 0x1da75 },
	{ 0x1da84, 0x1da84 }, { 0x1da9b, 0x1daaf }, { 0x1e000, 0x1e02a },
	{ 0x1e130, 0x1e136 }, { 0x1e2ae, 0x1e2ae }, { 0x1e2ec, 0x1e2ef },
	{ 0x1e8d0, 0x1e8d6 }, { 0x1e944, 0x1e94a }, { 0xe0001, 0xe01ef } };

/* East Asian width W and F, and the hexagrams, as in glibc. */
static const uint32_t wide[][2] = { { 0x1100, 0x115f }, { 0x231a, 0x231b },
	{ 0x2329, 0x232a }, { 0x23e9, 0x23ec }, { 0x23f0, 0x23f0 },
	{ 0x23f3, 0x23f3 }, { 0x25fd, 0x25fe }, { 0x2614, 0x2615 },
	{ 0x2648, 0x2653 }, { 0x267f, 0x267f }, { 0x2693, 0x2693 },
	{ 0x26a1, 0x26a1 }, { 0x26aa, 0x26ab }, { 0x26bd, 0x26be },
	{ 0x26c4, 0x26c5 }, { 0x26ce, 0x26ce }, { 0x26d4, 0x26d4 },
	{ 0x26ea, 0x26ea }, { 0x26f2, 0x26f3 }, { 0x26f5, 0x26f5 },
	{ 0x26fa, 0x26fa }, { 0x26fd, 0x26fd }, { 0x2705, 0x2705 },
	{ 0x270a, 0x270b }, { 0x2728, 0x2728 }, { 0x274c, 0x274c },
	{ 0x274e, 0x274e }, { 0x2753, 0x2755 }, { 0x2757, 0x2757 },
	{ 0x2795, 0x2797 }, { 0x27b0, 0x27b0 }, { 0x27bf, 0x27bf },
	{ 0x2b1b, 0x2b1c }, { 0x2b50, 0x2b50 }, { 0x2b55, 0x2b55 },
	{ 0x2e80, 0x3029 }, { 0x302e, 0x303e }, { 0x3041, 0x3096 },
	{ 0x309b, 0xa4c6 }, { 0xa960, 0xa97c }, { 0xac00, 0xd7a3 },
	{ 0xf900, 0xfad9 }, { 0xfe10, 0xfe19 }, { 0xfe30, 0xfe6b },
	{ 0xff01, 0xff60 }, { 0xffe0, 0xffe6 }, { 0x16fe0, 0x16fe3 },
	{ 0x16ff0, 0x1b2fb }, { 0x1f004, 0x1f004 }, { 0x1f0cf, 0x1f0cf },
	{ 0x1f18e, 0x1f18e }, { 0x1f191, 0x1f19a }, { 0x1f200, 0x1f320 },
	{ 0x1f32d, 0x1f335 }, { 0x1f337, 0x1f37c }, { 0x1f37e, 0x1f393 },
	{ 0x1f3a0, 0x1f3ca }, { 0x1f3cf, 0x1f3d3 }, { 0x1f3e0, 0x1f3f0 },
	{ 0x1f3f4, 0x1f3f4 }, { 0x1f3f8, 0x1f43e }, { 0x1f440, 0x1f440 },
	{ 0x1f442, 0x1f4fc }, { 0x1f4ff, 0x1f53d }, { 0x1f54b, 0x1f54e },
	{ 0x1f550, 0x1f567 }, { 0x1f57a, 0x1f57a }, { 0x1f595, 0x1f596 },
	{ 0x1f5a4, 0x1f5a4 }, { 0x1f5fb, 0x1f64f }, { 0x1f680, 0x1f6c5 },
	{ 0x1f6cc, 0x1f6cc }, { 0x1f6d0, 0x1f6d2 }, { 0x1f6d5, 0x1f6df },
	{ 0x1f6eb, 0x1f6ec }, { 0x1f6f4, 0x1f6fc }, { 0x1f7e0, 0x1f7f0 },
	{ 0x1f90c, 0x1f93a }, { 0x1f93c, 0x1f945 }, { 0x1f947, 0x1f9ff },
	{ 0x1fa70, 0x1faf6 }, { 0x20000, 0x3134a } };

int
utf8_next(struct utf8 *u, unsigned char byte, uint32_t c[2])
{
	int n = 0;

	if (u->need > 0) {
		if (byte >= u->lo && byte <= u->hi) {
			u->c = u->c << 6 | (byte & 0x3fu);
			u->lo = 0x80;
			u->hi = 0xbf;
			if (--u->need > 0)
				return 0;
			c[0] = u->c;
			return 1;
		}
		c[n++] = UTF8_BAD;
	}
	u->need = 0;
	u->lo = 0x80;
	u->hi = 0xbf;
	if (byte >= 0xc2 && byte <= 0xdf) {
		u->need = 1;
		u->c = byte & 0x1fu;
	} else if (byte >= 0xe0 && byte <= 0xef) {
		u->need = 2;
		u->c = byte & 0x0fu;
		if (byte == 0xe0)
			u->lo = 0xa0;
		else if (byte == 0xed) /* no surrogates */
			u->hi = 0x9f;
	} else if (byte >= 0xf0 && byte <= 0xf4) {
		u->need = 3;
		u->c = byte & 0x07u;
		if (byte == 0xf0)
			u->lo = 0x90;
		else if (byte == 0xf4)
			u->hi = 0x8f;
	} else if (byte < 0x80)
		c[n++] = byte;
	else
		c[n++] = UTF8_BAD;
	return n;
}

bool
utf8_cut(struct utf8 *u)
{
	bool begun;

	begun = u->need > 0;
	u->need = 0;
	return begun;
}

size_t
utf8_len(const unsigned char *p, size_t n)
{
	struct utf8 u = { .need = 0 };
	uint32_t c[2];
	size_t i;

	if (n == 0 || p[0] < 0xc2)
		return 0;
	(void)utf8_next(&u, p[0], c);
	for (i = 1; i < n && u.need > 0; i++) {
		if (p[i] < u.lo || p[i] > u.hi)
			return 0;
		u.lo = 0x80;
		u.hi = 0xbf;
		u.need--;
	}
	return u.need > 0 || i == 1 ? 0 : i;
}

uint32_t
utf8_char(const char *p, size_t *n)
{
	struct utf8 u = { .need = 0 };
	uint32_t c[2];
	size_t i = 0;

	while (utf8_next(&u, (unsigned char)p[i++], c) == 0)
		;
	*n = i;
	return c[0];
}

/* Writes at most four bytes. */
static size_t
encode(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

void
utf8_add(struct buf *out, uint32_t c)
{
	char s[4];

	buf_add(out, s, encode(s, c));
}

static bool
is_among(uint32_t c, const uint32_t (*range)[2], size_t n)
{
	size_t lo = 0, hi = n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (c > range[mid][1])
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && c >= range[lo][0];
}

int
char_width(uint32_t c)
{
	if (c < 0x20 || (c >= 0x7f && c < 0xa0))
		return -1;
	if (c < 0x300)
		return 1;
	if (is_among(c, zero, sizeof zero / sizeof zero[0]))
		return 0;
	return is_among(c, wide, sizeof wide / sizeof wide[0]) ? 2 : 1;
}

size_t
text_columns(const char *text, size_t n)
{
	size_t at, k, sum = 0;
	uint32_t ch;
	int w;

	for (at = 0; at < n; at += k) {
		ch = utf8_char(text + at, &k);
		w = ch == '\t' ? 8 - (int)(sum % 8) : char_width(ch);
		if (w > 0)
			sum += (size_t)w;
	}
	return sum;
}

cell
cell_mark(cell c, uint32_t mark)
{
	if (c >> CELL_BITS == 0)
		return c | (cell)mark << CELL_BITS;
	if (c >> 2 * CELL_BITS == 0)
		return c | (cell)mark << 2 * CELL_BITS;
	return c;
}

void
cells_split(cell *c, size_t n, size_t at)
{
	size_t i;

	if (at >= n || c[at] != CELL_TAIL)
		return;
	for (i = at; i < n && c[i] == CELL_TAIL; i++)
		c[i] = 0;
	for (i = at; i > 0 && c[i - 1] == CELL_TAIL; i--)
		c[i - 1] = 0;
	if (i > 0)
		c[i - 1] = 0;
}

void
cells_erase(cell *c, size_t n, size_t from, size_t to)
{
	size_t i;

	cells_split(c, n, from);
	cells_split(c, n, to);
	for (i = from; i < to; i++)
		c[i] = 0;
}

void
cells_put(cell *c, size_t n, size_t at, size_t w, uint32_t ch)
{
	size_t i;

	cells_split(c, n, at);
	cells_split(c, n, at + w);
	c[at] = ch;
	for (i = 1; i < w; i++)
		c[at + i] = CELL_TAIL;
}

size_t
cells_len(const cell *c, size_t n)
{
	while (n > 0 && c[n - 1] == 0)
		n--;
	return n;
}

void
cells_text(struct buf *out, const cell *c, size_t n, bool trim)
{
	size_t i, head;
	char *to;

	for (n = cells_len(c, n); trim && n > 0; n = cells_len(c, head)) {
		for (head = n - 1; head > 0 && c[head] == CELL_TAIL; head--)
			;
		if (c[head] != ' ' && c[head] != '\t')
			break;
	}
	for (i = 0; i < n; i++) {
		if (c[i] == CELL_TAIL)
			continue;
		buf_reserve(out, 12);
		to = out->data + out->len;
		if (c[i] < 0x80)
			*to++ = c[i] == 0 ? ' ' : (char)c[i];
		else {
			to += encode(to, c[i] & CELL_CHAR);
			if (c[i] >> CELL_BITS != 0)
				to += encode(to, c[i] >> CELL_BITS & CELL_CHAR);
			if (c[i] >> 2 * CELL_BITS != 0)
				to += encode(
				    to, c[i] >> 2 * CELL_BITS & CELL_CHAR);
		}
		out->len = (size_t)(to - out->data);
	}
	buf_reserve(out, 0);
	out->data[out->len] = '\0';
}

int
seq_what(const struct seq *q)
{
	int what;
	size_t i = 1, n = q->n;

	if (n == 0 || n == SEQ_TOO_LONG)
		return 0;
	what = q->byte[n - 1];
	if (q->byte[0] != '[' || n == 1) {
		if (n > 2)
			return 0;
		return n == 1 ? what : what + q->byte[0] * SEQ_BETWEEN;
	}
	what += SEQ_CSI;
	if (q->byte[1] >= '<' && q->byte[1] <= '?' && n > 2) {
		if (q->byte[1] != '?')
			return 0;
		what += SEQ_PRIVATE;
		i = 2;
	}
	while (i < n - 1 && q->byte[i] >= '0' && q->byte[i] <= ';')
		i++;
	if (i == n - 1)
		return what;
	return i == n - 2 ? what + q->byte[i] * SEQ_BETWEEN : 0;
}

/* Where the parameters begin. */
static size_t
first_param(const struct seq *q)
{
	return q->n > 1 && q->byte[1] >= '<' && q->byte[1] <= '?' ? 2 : 1;
}

int
seq_nparams(const struct seq *q)
{
	size_t i;
	int n = 1;

	i = first_param(q);
	if (i >= q->n || q->byte[i] < '0' || q->byte[i] > ';')
		return 0;
	for (; i < q->n && q->byte[i] >= '0' && q->byte[i] <= ';'; i++)
		n += q->byte[i] > '9';
	return n;
}

int
seq_param(const struct seq *q, int which)
{
	size_t i;
	int v = 0;

	for (i = first_param(q); i < q->n; i++) {
		if (q->byte[i] < '0' || q->byte[i] > ';')
			break;
		if (q->byte[i] > '9') {
			if (which-- == 0)
				break;
		} else if (which == 0) {
			v = v * 10 + (q->byte[i] - '0');
			if (v > SEQ_NUMBER_MAX)
				v = SEQ_NUMBER_MAX;
		}
	}
	return v;
}

/* Is one of the parameters one of the modes, a list that ends in 0? */
static bool
has_mode(const struct seq *q, const int *mode)
{
	int i, n;

	n = seq_nparams(q);
	for (; *mode != 0; mode++)
		for (i = 0; i < n; i++)
			if (seq_param(q, i) == *mode)
				return true;
	return false;
}

static enum seq_class
class_of(const struct seq *q)
{
	/* Insert, newline; origin, alternate screens, cursor. */
	static const int screen[] = { 4, 20, 0 };
	static const int screen_private[] = { 6, 47, 1047, 1048, 1049, 0 };
	static const int wrap[] = { 7, 0 };

	switch (seq_what(q)) {
	case SEQ_CSI + '@':
	case SEQ_CSI + 'C':
	case SEQ_CSI + 'D':
	case SEQ_CSI + 'G':
	case SEQ_CSI + 'I':
	case SEQ_CSI + 'K':
	case SEQ_CSI + SEQ_PRIVATE + 'K':
	case SEQ_CSI + 'P':
	case SEQ_CSI + 'X':
	case SEQ_CSI + 'Z':
	case SEQ_CSI + '`':
	case SEQ_CSI + 'a':
	case SEQ_CSI + 'b':
	case SEQ_CSI + 'j':
		return SEQ_LINE;
	case SEQ_CSI + 'A':
	case SEQ_CSI + 'B':
	case SEQ_CSI + 'E':
	case SEQ_CSI + 'F':
	case SEQ_CSI + 'H':
	case SEQ_CSI + 'J':
	case SEQ_CSI + SEQ_PRIVATE + 'J':
	case SEQ_CSI + 'L':
	case SEQ_CSI + 'M':
	case SEQ_CSI + 'S':
	case SEQ_CSI + 'T':
	case SEQ_CSI + 'd':
	case SEQ_CSI + 'e':
	case SEQ_CSI + 'f':
	case SEQ_CSI + 'k':
	case SEQ_CSI + 'r':
	case SEQ_CSI + '!' * SEQ_BETWEEN + 'p':
	case '7':
	case '8':
	case 'D':
	case 'E':
	case 'M':
	case 'c':
	case '(' * SEQ_BETWEEN + '0':
	case ')' * SEQ_BETWEEN + '0':
		return SEQ_SCREEN;
	case SEQ_CSI + 's':
	case SEQ_CSI + 'u':
		return seq_nparams(q) == 0 ? SEQ_SCREEN : SEQ_DROP;
	case SEQ_CSI + 'h':
		return has_mode(q, screen) ? SEQ_SCREEN : SEQ_DROP;
	case SEQ_CSI + SEQ_PRIVATE + 'h':
	case SEQ_CSI + SEQ_PRIVATE + 'l':
		if (has_mode(q, screen_private))
			return SEQ_SCREEN;
		return has_mode(q, wrap) ? SEQ_LINE : SEQ_DROP;
	default:
		return SEQ_DROP;
	}
}

/* Notes a byte of the sequence. */
static void
note(struct seq *q, unsigned char byte)
{
	if (q->n < sizeof q->byte)
		q->byte[q->n++] = (char)byte;
	else
		q->n = SEQ_TOO_LONG;
}

static enum seq_class
ends(struct seq *q, unsigned char byte)
{
	note(q, byte);
	q->state = GROUND;
	return class_of(q);
}

static enum seq_class
escape_next(struct seq *q, unsigned char byte)
{
	if (byte < 0x30) {
		note(q, byte);
		return SEQ_IN;
	}
	if (q->n == 0)
		switch (byte) {
		case '[':
			note(q, byte);
			q->state = CSI;
			return SEQ_IN;
		case ']':
			q->state = OSC;
			return SEQ_IN;
		case 'P':
			q->state = DCS;
			return SEQ_IN;
		case 'X':
		case '^':
		case '_':
			q->state = STRING;
			return SEQ_IN;
		default:
			break;
		}
	return ends(q, byte);
}

static enum seq_class
string_next(struct seq *q, unsigned char byte)
{
	if (byte == '\n' && q->state != DCS) {
		q->state = GROUND;
		return SEQ_TEXT;
	}
	if (byte == 0x07 && q->state == OSC) {
		q->state = GROUND;
		return SEQ_DROP;
	}
	return SEQ_IN;
}

enum seq_class
seq_next(struct seq *q, unsigned char byte)
{
	if (byte == 0x1b) {
		q->state = ESCAPE;
		q->n = 0;
		return SEQ_IN;
	}
	if (q->state == GROUND)
		return SEQ_TEXT;
	if (byte == 0x18 || byte == 0x1a) {
		q->state = GROUND;
		q->n = 0;
		return SEQ_DROP;
	}
	if (q->state >= OSC)
		return string_next(q, byte);
	if (byte >= 0x80) {
		q->state = GROUND;
		return SEQ_TEXT;
	}
	if (byte == 0 || byte == 0x7f)
		return SEQ_IN;
	if (byte < 0x20)
		return SEQ_TEXT;
	if (q->state == ESCAPE)
		return escape_next(q, byte);
	if (byte >= 0x40)
		return ends(q, byte);
	note(q, byte);
	return SEQ_IN;
}
