// SPDX-License-Identifier: MIT
// node list.mjs KIND SERVER…: checks everything that a server says without a
// gateway, and prints the names of its tools.
import assert from 'node:assert/strict';
import { isSpecType } from '@modelcontextprotocol/client';
import { connect, rules } from './client.mjs';

const [kind, ...server] = process.argv.slice(2);
const client = await connect(kind, server);
assert.equal(client.era, ['v1', 'legacy'].includes(kind) ? 'legacy' : 'modern');
const list = await client.list();
assert.ok(isSpecType.ListToolsResult(list));
assert.ok(!('nextCursor' in list));
list.tools.forEach(rules);
if (client.era === 'legacy')
	assert.deepEqual(await client.ping(), {});
else
	assert.ok(Number.isInteger(list.ttlMs));

const unknown = await client.raw('none', {});
assert.equal(unknown.isError, true);
assert.deepEqual(unknown.structuredContent, {
	error: { kind: 'invalid_request', message: 'unknown operation: none', details: {} },
});
await client.close();
console.log(list.tools.map(tool => tool.name).join('\n'));
