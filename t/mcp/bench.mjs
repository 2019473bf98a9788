// SPDX-License-Identifier: MIT
// node bench.mjs RUNS METHOD PARAMS SERVER…: asks a warm server so many times;
// prints the milliseconds of the middle and of the 95th of a hundred, and the
// server's share of memory in KiB.
import fs from 'node:fs';
import readline from 'node:readline';
import { spawn } from 'node:child_process';

const [runs, method, params, command, ...args] = process.argv.slice(2);
const server = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const lines = readline.createInterface({ input: server.stdout })[Symbol.asyncIterator]();

async function ask(message) {
	server.stdin.write(JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }) + '\n');
	const { result } = JSON.parse((await lines.next()).value);
	if (!result || result.isError)
		throw new Error(`${method}: no answer, or an error`);
}

await ask({ method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } } });
const times = [];
for (let i = -10; i < runs; i++) {
	const start = performance.now();
	await ask({ method, params: JSON.parse(params) });
	if (i >= 0)
		times.push(performance.now() - start);
}
times.sort((a, b) => a - b);
const at = share => times[Math.ceil(share * runs) - 1].toFixed(2);
const [, pss] = fs.readFileSync(`/proc/${server.pid}/smaps_rollup`, 'utf8').match(/^Pss: +(\d+)/m);
console.log(at(0.5), at(0.95), pss);
server.stdin.end();
