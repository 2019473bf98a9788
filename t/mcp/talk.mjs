// SPDX-License-Identifier: MIT
// node talk.mjs KIND SERVER…: calls the tools that standard input names, in
// lines of a name and its arguments, one after the other; prints the results.
// The first line is the server's process id.
import readline from 'node:readline';
import { connect } from './client.mjs';

const [kind, ...server] = process.argv.slice(2);
const client = await connect(kind, server);
console.log(client.pid);
for await (const line of readline.createInterface({ input: process.stdin })) {
	const [, name, args] = line.match(/^(\S+) (.*)$/);
	console.log(JSON.stringify((await client.raw(name, JSON.parse(args))).structuredContent));
}
await client.close();
