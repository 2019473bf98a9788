// SPDX-License-Identifier: MIT
// node ops.mjs WORKSPACE TWIN: the same work twice in sandboxes over directories
// that are the same, by tools in the one and by command lines in the other. Every
// answer must be the same, byte for byte, and every tool must have been called.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { connect } from './client.mjs';

const kinds = { management: 'v1', runtime: '2026-07-28', observability: 'legacy' };
const program = { management: 'sandbox-manager-cli', runtime: 'sandbox-runtime-cli', observability: 'sandbox-observability-cli' };
const positional = { exec_command: 'cmd', write_command_stdin: 'stdin' };

// What is different each time: times and processes, what was used of the machine,
// and names, which are replaced by their order of appearance.
const times = /("(?:wall_time_seconds|command_total_time_seconds|daemon_pid|time|[a-z_]*(?:_at|_at_ms|_unix_ms|_ms|_ns))":)(?:\d+(?:\.\d+)?|"[\dTZ:.-]+")/g;
const used = /(?<="resources":)\{"latest":(?:null|\{.*?\}),"history":\[.*?\]\}/g;
const names = /\b(?:[0-9a-f]{22}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|L\d{6}-[0-9a-f]+|(?<="root_hash":")[0-9a-f]{64})\b/g;

// plainly(WORKSPACE): a function that takes these out of an answer.
function plainly(workspace) {
	const seen = [];
	return text => text.replace(used, 'USED').replace(times, '$1T').replaceAll(workspace, 'WORKSPACE').replace(names, name => {
		if (!seen.includes(name))
			seen.push(name);
		return `N${seen.indexOf(name)}`;
	});
}

// The answer of a command line to what the arguments of a tool say.
function cli(set, tool, { sandbox_id, ...args }) {
	const selected = set === 'runtime' ? ['--sandbox-id', sandbox_id] : [];
	if (set !== 'runtime' && sandbox_id !== undefined)
		args.sandbox_id = sandbox_id;
	const { [positional[tool]]: operand, ...flags } = args;
	const words = operand === undefined ? [] : [operand];
	for (const [name, value] of Object.entries(flags))
		words.push(`--${name.replaceAll('_', '-')}`, typeof value === 'object' ? JSON.stringify(value) : String(value));
	return new Promise(resolve => {
		const child = execFile(program[set], [...selected, tool, ...words], (error, stdout, stderr) =>
			resolve((error ? stderr : stdout).trimEnd()));
		child.stdin.end();
	});
}

// work(ASK, WORKSPACE): of each tool one call, at least; the sandbox.
async function work(ask, workspace_root) {
	const manage = (tool, args = {}) => ask('management', tool, args);
	await manage('list_docker_images');
	await manage('list_workspace_directories', { path: workspace_root });
	await manage('list_workspace_directories', { path: `${workspace_root}/f` });
	await manage('create_sandbox', { image: 'none', workspace_root });
	const { id: sandbox_id } = await manage('create_sandbox', { image: 'host', workspace_root });
	await manage('inspect_sandbox', { sandbox_id });
	await manage('inspect_sandbox', { sandbox_id: 'none' });

	const run = (tool, args = {}) => ask('runtime', tool, { sandbox_id, ...args });
	const see = (tool, args = {}) => ask('observability', tool, { sandbox_id, ...args });
	const enough = { yield_time_ms: 60000 };

	const { workspace_session_id } = await run('create_workspace_session');
	const at = { workspace_session_id };
	await run('exec_command', { ...at, ...enough, cmd: 'cat f; echo new >g; printf "\\342\\202\\254"' });
	const { command_session_id } = await run('exec_command', { ...at, yield_time_ms: 0, cmd: 'read x; echo "got $x"; exit 3' });
	await run('write_command_stdin', { command_session_id, ...enough, stdin: 'hello\n' });
	await run('read_command_lines', { command_session_id, start_offset: 1, limit: 1 });
	const slow = await run('exec_command', { ...at, yield_time_ms: 0, cmd: 'sleep 1000' });
	await run('list_commands', { state: 'running' });
	await run('kill_command', { command_session_id: slow.command_session_id });
	await run('wait_command', { command_session_id: slow.command_session_id, ...enough });
	await run('kill_command', { command_session_id: 'none' });
	await run('file_read', { path: 'g', ...at });
	await run('file_write', { path: 'h', content: 'one\ntwo "\\\u2028\u00e4\n', ...at });
	await run('file_edit', { path: 'h', edits: [{ old_string: 'two', new_string: '2' }], ...at });
	await run('list_files', at);
	await run('diff_workspace_session', { form: 'names', ...at });
	await run('diff_workspace_session', at);
	await run('list_workspace_sessions');
	await see('snapshot');
	await see('layerstack');
	await run('publish_workspace_session', at);
	await run('file_read', { path: 'h', offset: 2, limit: 1 });
	await run('file_read', { path: 'none' });
	await run('file_edit', { path: 'h', edits: [{ old_string: 'one', new_string: '1' }] });
	await run('file_blame', { path: 'h' });

	// A conflict, and the session that has it is dropped.
	const mine = { workspace_session_id: (await run('create_workspace_session')).workspace_session_id };
	await run('file_write', { path: 'f', content: 'mine\n', ...mine });
	await run('file_write', { path: 'f', content: 'theirs\n' });
	await run('publish_workspace_session', mine);
	await run('destroy_workspace_session', { ...mine, grace_s: 0.5 });
	await see('history');
	await see('layerstack');
	return sandbox_id;
}

const [workspace, twin] = process.argv.slice(2);
const clients = {};
const left = new Set();
for (const [set, kind] of Object.entries(kinds)) {
	clients[set] = await connect(kind, ['sandbox-mcp', '--set', set]);
	for (const { name } of (await clients[set].list()).tools)
		left.add(name);
}

const answers = { tools: [], lines: [] };
const plain = { tools: plainly(workspace), lines: plainly(twin) };
const keep = (by, tool, args, answer) => {
	answers[by].push(plain[by](`${tool} ${JSON.stringify(args)}: ${answer}`));
	return JSON.parse(answer);
};
const told = [];
const byTool = async (set, tool, args) => {
	left.delete(tool);
	const options = tool === 'create_sandbox' ? { onprogress: p => told.push(p) } : {};
	return keep('tools', tool, args, (await clients[set].raw(tool, args, options)).content[0].text);
};
const byLine = async (set, tool, args) => keep('lines', tool, args, await cli(set, tool, args));
const made = await Promise.all([work(byTool, workspace), work(byLine, twin)]);
assert.ok(told.every(p => p.message) && told.length > 0);

// Of both sandboxes, so it is the same question.
left.delete('list_sandboxes');
const { content } = await clients.management.raw('list_sandboxes', {});
assert.equal(content[0].text, await cli('management', 'list_sandboxes', {}));

await byTool('management', 'destroy_sandbox', { sandbox_id: made[0] });
await byLine('management', 'destroy_sandbox', { sandbox_id: made[1] });
answers.tools.forEach((answer, i) => assert.equal(answer, answers.lines[i]));
assert.equal(answers.tools.length, answers.lines.length);
assert.deepEqual([...left], []);
for (const client of Object.values(clients))
	await client.close();
