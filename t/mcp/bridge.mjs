// SPDX-License-Identifier: MIT
// node bridge.mjs SERVER…: the conformance suite asks by HTTP; this passes what
// it asks to the server as lines, under an id of its own, and the answers back.
// What HTTP adds, status codes and headers that repeat the body, is answered
// here. Prints the port that it listens on.
import http from 'node:http';
import readline from 'node:readline';
import { spawn } from 'node:child_process';

const meta = 'io.modelcontextprotocol/';
const [command, ...args] = process.argv.slice(2);
const server = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const waiting = new Map(); // our id -> who asked
let last = 0;

const send = message => server.stdin.write(JSON.stringify(message) + '\n');

readline.createInterface({ input: server.stdout }).on('line', line => {
	const message = JSON.parse(line);
	if (!message.method) {
		waiting.get(message.id)?.answer(message);
		return;
	}
	const { progressToken, _meta } = message.params;
	const stream = _meta?.[meta + 'subscriptionId'];
	for (const [id, asker] of waiting) {
		if (id === stream)
			_meta[meta + 'subscriptionId'] = asker.id;
		if (id === stream || (progressToken !== undefined && asker.token === progressToken))
			asker.notify(message);
	}
});

function status(error) {
	if (!error)
		return 200;
	if (error.code === -32601)
		return 404;
	return [-32700, -32600, -32602, -32020, -32021, -32022].includes(error.code) ? 400 : 200;
}

class Asker {
	constructor(message, response, modern) {
		Object.assign(this, { id: message.id, response, modern, token: message.params?._meta?.progressToken });
		const id = `bridge-${++last}`;
		waiting.set(id, this);
		response.on('close', () => {
			if (waiting.delete(id))
				send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
		});
		this.done = () => waiting.delete(id);
		send({ ...message, id });
	}
	event(message) {
		this.response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
	}
	notify(message) {
		if (!this.response.headersSent)
			this.response.writeHead(200, { 'content-type': 'text/event-stream' });
		this.event(message);
	}
	answer(message) {
		this.done();
		message.id = this.id;
		if (!this.response.headersSent) {
			reply(this.response, this.modern ? status(message.error) : 200, message);
		} else {
			this.event(message);
			this.response.end();
		}
	}
}

function reply(response, code, message) {
	response.writeHead(code, { 'content-type': 'application/json' });
	response.end(message && JSON.stringify(message));
}

function asked(request, body, response) {
	let message;
	try {
		message = JSON.parse(body);
	} catch {
		return reply(response, 400, { jsonrpc: '2.0', error: { code: -32700, message: 'not JSON' } });
	}
	if (message.id === undefined) {
		send(message);
		return reply(response, 202);
	}
	const inHeader = request.headers['mcp-protocol-version'];
	const inBody = message.params?._meta?.[meta + 'protocolVersion'];
	const modern = inBody !== undefined || inHeader >= '2026';
	const agree = inHeader === inBody && request.headers['mcp-method'] === message.method;
	if (modern && message.method !== 'initialize' && !agree) {
		const code = inBody === undefined ? -32602 : -32020;
		const error = { code, message: 'the headers say something else' };
		return reply(response, 400, { jsonrpc: '2.0', id: message.id, error });
	}
	return new Asker(message, response, modern);
}

const listener = http.createServer((request, response) => {
	let body = '';
	if (request.method !== 'POST')
		return response.writeHead(405).end();
	request.setEncoding('utf8');
	request.on('data', text => (body += text));
	request.on('end', () => asked(request, body, response));
});
listener.listen(0, '127.0.0.1', () => console.log(listener.address().port));
server.on('exit', () => process.exit(1));
process.on('SIGTERM', () => {
	server.removeAllListeners('exit');
	server.on('exit', code => process.exit(code));
	server.stdin.end();
});
