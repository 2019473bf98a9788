/* SPDX-License-Identifier: MIT */
#include "background.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "num.h"
#include "out.h"
#include "proctree.h"
#include "stage.h"

static const char file[] = "processes";

enum {
	LISTED = 64,
	COMMAND_BYTES = 200, /* of each */
	CMDLINE_BYTES = 65536,
	FILE_BYTES = 65536
};

static void
add_command(struct buf *b, int procfd, pid_t pid)
{
	struct buf text = BUF_INIT;
	char name[32];

	snprintf(name, sizeof name, "%ld/cmdline", (long)pid);
	if (io_read_file_at(procfd, name, &text, CMDLINE_BYTES) == -1 ||
	    text.len == 0) {
		buf_addc(b, '?');
		buf_release(&text);
		return;
	}
	/* The last word ends in NUL too. */
	buf_cut(&text,
	    text.len > COMMAND_BYTES              ? COMMAND_BYTES
		: text.data[text.len - 1] == '\0' ? text.len - 1
						  : text.len);
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (c == '\0')
			c = ' ';
		buf_addc(b, c < 0x20 || c > 0x7e ? '?' : c);
	}
	buf_release(&text);
}

void
background_write(int dirfd, int procfd, pid_t root)
{
	struct buf b = BUF_INIT;
	struct proctree t = PROCTREE_INIT;
	size_t listed = 0;

	if (root == 0 || proctree_read(procfd, root, &t) == -1)
		goto out;
	buf_addf(&b, "%zu\n", t.alive);
	for (size_t i = 0; i < t.n && listed < LISTED; i++) {
		pid_t pid = t.one[i].pid;

		if (strchr("ZXx", t.one[i].state))
			continue;
		buf_addf(&b, "%ld ", (long)proctree_inner(procfd, pid));
		add_command(&b, procfd, pid);
		buf_addc(&b, '\n');
		listed++;
	}
	stage_file_nosync(dirfd, file, b.data, b.len, 0600);
out:
	proctree_release(&t);
	buf_release(&b);
}

void
background_remove(int dirfd)
{
	unlinkat(dirfd, file, 0);
}

static void
out_process(struct buf *list, char *line)
{
	char *blank = strchr(line, ' ');
	uint64_t pid;

	if (!blank)
		return;
	*blank = '\0';
	if (!num_dec(line, 0, INT32_MAX, &pid))
		return;
	if (list->len > 0)
		buf_addc(list, ',');
	buf_addc(list, '{');
	out_num(list, "pid", pid);
	out_str(list, "command", blank + 1);
	buf_addc(list, '}');
}

void
background_out(struct buf *b, int dirfd)
{
	struct buf text = BUF_INIT, list = BUF_INIT;
	char *line, *save = NULL;
	uint64_t n;

	if (io_read_file_at(dirfd, file, &text, FILE_BYTES) == -1 || !text.data)
		goto out;
	line = strtok_r(text.data, "\n", &save);
	if (!line || !num_dec(line, 1, INT32_MAX, &n))
		goto out;
	for (line = strtok_r(NULL, "\n", &save); line;
	    line = strtok_r(NULL, "\n", &save))
		out_process(&list, line);
	out_num(b, "background_count", n);
	out_key(b, "background_processes");
	buf_addf(b, "[%s]", buf_str(&list));
out:
	buf_release(&text);
	buf_release(&list);
}
