// SPDX-License-Identifier: MIT
// node parts.mjs TOOL ARGUMENTS MEMBER: all of a text that is too long for one
// answer, by as many calls as it takes, and how many these were.
import assert from 'node:assert/strict';
import { connect } from './client.mjs';

const [tool, args, member] = process.argv.slice(2);
const client = await connect('v1', ['sandbox-mcp', '--set', 'runtime']);
const parts = [];
let answer = {};
do {
	answer = await client.call(tool, { ...JSON.parse(args), offset: answer.next_offset });
	assert.ok(JSON.stringify(answer).length < 10000);
	assert.equal(answer.truncated ?? false, answer.next_offset > 0);
	parts.push(answer[member]);
} while (answer.next_offset);
await client.close();
// Lines of a file come without the last newline.
process.stdout.write(parts.map(part => part.replace(/\n?$/, '\n')).join(''));
console.error(parts.length);
