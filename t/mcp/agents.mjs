// SPDX-License-Identifier: MIT
// node agents.mjs SANDBOX TOKEN TOKEN TOKEN: three agents in one sandbox at
// once, each a client of another kind with its own server and token. The file
// "shared" has the lines l1 to l9.
import assert from 'node:assert/strict';
import { connect } from './client.mjs';

const [sandbox_id, ...tokens] = process.argv.slice(2);
const kinds = ['v1', 'legacy', '2026-07-28'];
const names = ['ann', 'bob', 'cat'];
const edits = {
	ann: [[1, 'ann']],
	bob: [[9, 'bob']],
	cat: [[1, 'cat'], [5, 'cat']],
};

const base = Array.from({ length: 9 }, (_, i) => `l${i + 1}`);
const edited = (lines, list) => lines.map((line, i) => {
	const edit = list.find(([n]) => n === i + 1);
	return edit ? `${line} by ${edit[1]}` : line;
});
const text = lines => lines.join('\n');

const agents = await Promise.all(names.map(async (name, i) => {
	const client = await connect(kinds[i], ['sandbox-mcp', '--set', 'runtime', '--gateway-auth-token', tokens[i]]);
	const { workspace_session_id } = await client.call('create_workspace_session', { sandbox_id });
	const at = { sandbox_id, workspace_session_id };
	return {
		name,
		client,
		session: workspace_session_id,
		inside: (tool, args) => client.call(tool, { ...at, ...args }),
		head: (tool, args) => client.call(tool, { sandbox_id, ...args }),
		publish: () => client.call('publish_workspace_session', at),
		refused: () => client.refused('publish_workspace_session', at),
	};
}));
const [ann, bob, cat] = agents;
const all = step => Promise.all(agents.map(step));
const change = line => ({ old_string: `l${line[0]}\n`, new_string: `l${line[0]} by ${line[1]}\n` });

// Each edits, and sees its own edits only, by file tools and by commands.
await all(a => a.inside('file_edit', { path: 'shared', edits: edits[a.name].map(change) }));
await all(a => a.inside('file_write', { path: `new/${a.name}`, content: `${a.name}\n` }));
await all(async a => {
	const mine = edited(base, edits[a.name]);
	assert.equal((await a.inside('file_read', { path: 'shared' })).content, text(mine));
	const run = await a.inside('exec_command', { cmd: 'cat shared; ls new', yield_time_ms: 60000 });
	assert.deepEqual(run.output.split('\n'), [...mine, a.name]);
	assert.equal(run.exit_code, 0);
	assert.equal((await a.head('file_read', { path: 'shared' })).content, text(base));
});

// One publishes, the second is merged, the third overlaps and is refused.
assert.equal((await ann.publish()).publish.no_op, false);
assert.equal((await bob.publish()).destroyed, true);
const published = edited(base, [...edits.ann, ...edits.bob]);
await all(async a => assert.equal((await a.head('file_read', { path: 'shared' })).content, text(published)));
const error = await cat.refused();
assert.equal(error.kind, 'operation_failed');
assert.equal(error.details.session_retained, true);
assert.equal(error.details.publish_rejection.path, 'shared');

// It looks what the line is now, takes it, and keeps the rest of its work.
const now = (await cat.head('file_read', { path: 'shared', limit: 1 })).content;
await cat.inside('file_edit', { path: 'shared', edits: [{ old_string: 'l1 by cat', new_string: now }] });
assert.equal((await cat.publish()).publish.no_op, false);

// All see the same, and who wrote what.
const owners = edited(base, [...edits.ann, ...edits.bob, edits.cat[1]]);
const sessions = Object.fromEntries(agents.map(a => [a.name, `workspace_session:${a.session}`]));
await all(async a => {
	assert.equal((await a.head('file_read', { path: 'shared' })).content, text(owners));
	const { ranges } = await a.head('file_blame', { path: 'shared' });
	const found = ranges.flatMap(r => Array(r.line_count).fill(r.owner));
	assert.deepEqual(found, owners.map(line => sessions[line.split(' by ')[1]] ?? 'original'));
	for (const { name } of agents)
		assert.equal((await a.head('file_read', { path: `new/${name}` })).content, name);
	assert.deepEqual((await a.head('list_workspace_sessions')).sessions, []);
	await a.client.close();
});
