// SPDX-License-Identifier: MIT
// node wait.mjs KIND SANDBOX: calls that wait, beside others.
import assert from 'node:assert/strict';
import { connect } from './client.mjs';

const [kind, sandbox_id] = process.argv.slice(2);
const client = await connect(kind, ['sandbox-mcp', '--set', 'runtime']);
const { workspace_session_id } = await client.call('create_workspace_session', { sandbox_id });
const at = { sandbox_id, workspace_session_id };

// long(SECONDS, OPTIONS): a call that waits for a command, and what it is told
// meanwhile.
function long(seconds, options) {
	const call = { told: [], over: false };
	call.first = new Promise(resolve => {
		call.end = client.call('exec_command', { ...at, cmd: `sleep ${seconds}`, yield_time_ms: 60000 }, {
			...options,
			onprogress: p => resolve(call.told.push(p.progress)),
		}).finally(() => (call.over = true));
	});
	return call;
}
const running = async () => (await client.call('list_commands', { ...at, state: 'running' })).commands;

const stop = new AbortController();
const { signal } = stop;
const left = long(1000, { signal });
const ended = long(1001, { signal, meta: { 'sb/on_cancel': 'end' } });
const short = long(7);
const calls = [left, ended, short];
const cancelled = Promise.all([left, ended].map(call => assert.rejects(call.end)));

// Others are answered while these wait.
await client.call('list_workspace_sessions', { sandbox_id });
await client.list();
if (client.era === 'legacy')
	await client.ping();
assert.ok(!left.over && !ended.over);

// Cancelled, the calls are over. A command goes on, unless it was to end.
await Promise.all(calls.map(call => call.first));
stop.abort('the test has seen enough');
await cancelled;
let { status, exit_code, command_session_id: job } = await short.end;
while (status === 'running')
	({ status, exit_code } = await client.call('wait_command', { sandbox_id, command_session_id: job }));
assert.deepEqual([status, exit_code], ['ok', 0]);
for (const { told } of calls)
	assert.ok(told.length > 0 && told.every((p, i) => i === 0 || p > told[i - 1]), `progress: ${told}`);
const late = Date.now() + 120000;
while ((await running()).length > 1)
	assert.ok(Date.now() < late, 'a command goes on that was to end');
const [{ command, command_session_id }] = await running();
assert.equal(command, 'sleep 1000');
await client.call('kill_command', { sandbox_id, command_session_id });
assert.deepEqual(await running(), []);
await client.call('destroy_workspace_session', at);
await client.close();
