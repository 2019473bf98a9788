/* SPDX-License-Identifier: MIT */
#include "mcpout.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mcprpc.h"
#include "out.h"

void
mcpout_emit(struct mcpout *o, const struct buf *message)
{
	buf_add(&o->queue, message->data, message->len);
	buf_addc(&o->queue, '\n');
	o->said += message->len + 1;
}

size_t
mcpout_left(const struct mcpout *o)
{
	return o->queue.len - o->written;
}

/*
 * A pipe that can be written has room for PIPE_BUF bytes; it is not ours alone,
 * so it is not made non-blocking.
 */
static ssize_t
write_some(struct mcpout *o, const char *p, size_t n)
{
	ssize_t w;

	if (!o->no_socket) {
		w = send(o->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (w != -1 || errno != ENOTSOCK)
			return w;
		o->no_socket = true;
	}
	return write(o->fd, p, n < PIPE_BUF ? n : PIPE_BUF);
}

int
mcpout_flush(struct mcpout *o)
{
	ssize_t w;

	if (mcpout_left(o) == 0)
		return 0;
	w = write_some(o, o->queue.data + o->written, mcpout_left(o));
	if (w == -1)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	o->written += (size_t)w;
	o->gone += (size_t)w;
	if (mcpout_left(o) == 0) {
		buf_release(&o->queue);
		o->written = 0;
	}
	return 0;
}

void
mcp_batch_done(struct mcp_batch *b)
{
	if (!b || --b->waits > 0)
		return;
	if (b->replies.len > 0) {
		buf_addc(&b->replies, ']');
		mcpout_emit(b->out, &b->replies);
	}
	buf_release(&b->replies);
	free(b);
}

/* Takes a whole reply. */
static void
deliver(const struct mcp_peer *to, struct buf *reply)
{
	if (to->batch) {
		buf_addc(&to->batch->replies,
		    to->batch->replies.len > 0 ? ',' : '[');
		buf_add(&to->batch->replies, reply->data, reply->len);
		mcp_batch_done(to->batch);
	} else {
		mcpout_emit(to->out, reply);
	}
	buf_release(reply);
}

void
mcp_refuse(
    const struct mcp_peer *to, int code, const char *message, const char *data)
{
	struct buf reply = BUF_INIT;

	rpc_error(to->id, code, message, data, &reply);
	deliver(to, &reply);
}

bool
mcp_answer(const struct mcp_peer *to, struct buf *members, size_t max)
{
	struct buf result = BUF_INIT, reply = BUF_INIT;
	bool fits;

	buf_addc(&result, '{');
	if (to->modern)
		out_str(&result, "resultType", "complete");
	if (to->modern && members->len > 0)
		buf_addc(&result, ',');
	buf_add(&result, buf_str(members), members->len);
	buf_release(members);
	if (to->modern) {
		out_key(&result, "_meta");
		buf_adds(
		    &result, "{\"" MCP_META "serverInfo\":" MCP_SERVER "}");
	}
	buf_addc(&result, '}');
	rpc_result(to->id, &result, &reply);
	buf_release(&result);
	fits = max == 0 || reply.len < max;
	if (fits)
		deliver(to, &reply);
	else
		buf_release(&reply);
	return fits;
}
