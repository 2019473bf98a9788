// SPDX-License-Identifier: MIT
// Clients of MCP with one face, and what each of them must find.
import assert from 'node:assert/strict';
import { isSpecType } from '@modelcontextprotocol/client';

// Longer than anything here takes, however busy the machine.
const timeout = 300000;

// connect(KIND, COMMAND): a client and the server that it starts. KIND is v1,
// the SDK; or what client v2 is told to speak: legacy, auto or a revision.
// Its close() fails if the client found fault with anything that it was sent.
export async function connect(kind, [command, ...args]) {
	const v1 = kind === 'v1';
	const { Client } = await import(v1 ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
	const { StdioClientTransport } = await import(v1 ? '@modelcontextprotocol/sdk/client/stdio.js' : '@modelcontextprotocol/client/stdio');
	const mode = /^\d/.test(kind) ? { pin: kind } : kind;
	const client = new Client({ name: 'sb-test', version: '1' }, v1 ? {} : { versionNegotiation: { mode } });
	const faults = [];
	client.onerror = e => faults.push(e.message);
	const transport = new StdioClientTransport({ command, args, env: process.env, stderr: 'pipe' });
	transport.stderr.on('data', text => faults.push(`stderr: ${text}`));
	await client.connect(transport, { timeout });

	return {
		pid: transport.pid,
		era: v1 ? 'legacy' : client.getProtocolEra(),
		ping: () => client.ping({ timeout }),
		list: () => client.listTools(undefined, { timeout }),

		// The result as it came.
		async raw(name, args, { meta, ...options } = {}) {
			const params = { name, arguments: args, _meta: meta };
			const all = { timeout, ...options };
			const result = await (v1 ? client.callTool(params, undefined, all) : client.callTool(params, all));
			return checked(result);
		},
		// The answer of a call that succeeds.
		async call(name, args = {}, options = {}) {
			const result = await this.raw(name, args, options);
			assert.equal(result.isError, false, `${name}: ${result.content[0].text}`);
			return result.structuredContent;
		},
		// The error of a call that does not.
		async refused(name, args = {}, options = {}) {
			const result = await this.raw(name, args, options);
			assert.equal(result.isError, true, `${name}: ${result.content[0].text}`);
			return result.structuredContent.error;
		},
		async close() {
			await client.close();
			assert.deepEqual(faults, []);
		},
	};
}

// Clients take the one or the other, or both if they differ.
function checked(result) {
	assert.ok(isSpecType.CallToolResult(result));
	assert.deepEqual(Object.keys(result.content[0]), ['type', 'text']);
	assert.equal(result.content.length, 1);
	assert.equal(result.content[0].text, JSON.stringify(result.structuredContent));
	return result;
}

const keywords = ['type', 'properties', 'required', 'additionalProperties', 'items', 'description', 'enum', 'default', 'minimum', 'maximum'];

// rules(TOOL): throws unless every client takes it, and shows it to its model.
export function rules(tool) {
	const is = (ok, what) => assert.ok(ok, `${tool.name}: ${what}`);
	const object = (schema, where) => {
		is(schema.type === 'object', `${where}: not an object`);
		is(schema.properties && Array.isArray(schema.required), `${where}: no properties or required`);
		is(schema.additionalProperties === false, `${where}: takes other properties`);
		is(schema.required.every(r => r in schema.properties), `${where}: requires what there is not`);
		for (const [name, property] of Object.entries(schema.properties)) {
			is(/^[a-z][a-z0-9_]{0,39}$/.test(name), `${where}.${name}: a name that not all take`);
			is(typeof property === 'object', `${where}.${name}: no schema`);
			is(property.description, `${where}.${name}: no description`);
			value(property, `${where}.${name}`);
		}
	};
	const value = (schema, where) => {
		is(['string', 'integer', 'number', 'boolean', 'array', 'object'].includes(schema.type), `${where}: its type`);
		for (const key of Object.keys(schema))
			is(keywords.includes(key), `${where}: keyword ${key}`);
		for (const key of ['minimum', 'maximum', 'default'])
			is(typeof schema[key] !== 'number' || Math.abs(schema[key]) <= 2 ** 53, `${where}: ${key} is too large`);
		// Some clients drop the keywords.
		for (const key of ['minimum', 'maximum', 'default'])
			is(!schema[key] || schema.description.includes(String(schema[key])), `${where}: ${key} is not in its description`);
		is(!schema.enum || schema.enum.every(e => typeof e === 'string'), `${where}: enum`);
		if (schema.type === 'array') {
			is(schema.items?.type, `${where}: no items`);
			value({ description: '', ...schema.items }, `${where}[]`);
		}
		if (schema.type === 'object')
			object(schema, where);
	};

	assert.deepEqual(Object.keys(tool), ['name', 'description', 'inputSchema', 'annotations']);
	is(/^[a-z][a-z0-9_]{0,39}$/.test(tool.name), 'its name');
	is(tool.description && tool.description.length <= 1000, 'its description');
	for (const [key, hint] of Object.entries(tool.annotations))
		is(/^(readOnly|destructive|idempotent|openWorld)Hint$/.test(key) && typeof hint === 'boolean', `annotation ${key}`);
	is(['readOnlyHint', 'destructiveHint', 'openWorldHint'].every(hint => hint in tool.annotations), 'its annotations');
	is(!tool.annotations.readOnlyHint || !tool.annotations.destructiveHint, 'reads only and destroys');
	for (const key of Object.keys(tool.inputSchema))
		is(keywords.includes(key), `keyword ${key}`);
	object(tool.inputSchema, 'inputSchema');
	assert.ok(!/:null[,}\]]/.test(JSON.stringify(tool)), `${tool.name}: null`);
}
