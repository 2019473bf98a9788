# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

@test "usage, help, output that cannot be written, files that are missing" {
	run -100 --separate-stderr sandbox-catalog-export x
	is "$stderr" "sandbox-catalog-export: usage: sandbox-catalog-export"
	run -0 sandbox-catalog-export -h
	is "$output" "usage: sandbox-catalog-export"
	run -111 bash -c "sandbox-catalog-export >/dev/full"
	run -111 bash -c "sandbox-catalog-export >&-"
	SB_OPS=$T/none run -111 sandbox-catalog-export
	has "$output" "fatal: unable to open the operations in $T/none: No such file or directory"
}

@test "it is pretty JSON, two blanks a level, below a mebibyte" {
	need jq
	sandbox-catalog-export >out
	jq --indent 2 . out >want
	same out want
	[ "$(wc -c <out)" -lt 1048576 ]
}

# What the strictest known reader checks.
@test "what it says is complete and fits together" {
	need jq
	sandbox-catalog-export >out
	is "$(jq -c 'keys_unsorted, .schema_version, .kind, (.domains | keys_unsorted)' out)" '["schema_version","kind","domains"]
1
"ephemeral_sandbox_product_catalog"
["manager","runtime","observability"]'
	is "$(jq -c '.domains[] | keys_unsorted' out | sort -u)" '["operation_execution_space","families","operations","routes"]'
	is "$(jq -c '.domains[].operations[] | keys_unsorted' out | sort -u)" '["name","family","summary","description","args","related"]'
	is "$(jq -c '.domains[].operations[].args[] | keys_unsorted' out | sort -u)" '["name","kind","required","help","default"]'
	is "$(jq -c '.domains[].routes[] | keys_unsorted' out | sort -u)" '["operation","scope_policy","scope_kind","execution_owner","visibility"]'
	is "$(jq -c '.domains[].operations[].args[].default | type' out | sort -u)" '"null"
"string"'
	is "$(jq -c '.domains[] | [.families[].id] == ([.families[].id] | unique | sort) or
	    ([.families[].id] | length) == ([.families[].id] | unique | length)' out | sort -u)" true
	is "$(jq -c '.domains[] | ([.operations[].name] | length) == ([.operations[].name] | unique | length)' out | sort -u)" true
	is "$(jq -c '.domains[] | [.families[].id] as $f | .operations[] | .family as $x | $f | index($x) != null' out | sort -u)" true
	is "$(jq -c '.domains[] | [.operations[].name] as $n | .operations[].related[] | . as $x | $n | index($x) != null' out | sort -u)" true
	is "$(jq -c '.domains[] | ([.operations[].name] | sort) == ([.routes[].operation] | unique)' out | sort -u)" true
	is "$(jq -r '.domains[].routes[] | [.scope_policy, .scope_kind] | join(" ")' out | sort -u)" \
"$(grep -l system_or_sandbox "$SB_TOP"/svc/ops/*/*.json >both && echo 'sandbox_required sandbox
system system
system_or_sandbox sandbox
system_or_sandbox system' || echo 'sandbox_required sandbox
system system')"
}

@test "the families are those of the interface, in order" {
	need jq
	sandbox-catalog-export >out
	families() { jq -r ".domains.$1.families | map(.id) | join(\" \")" out; }
	is "$(families manager)" management
	is "$(families runtime)" "command file daemon_http network_isolation reserved_paths shell_security workspace_session"
	is "$(families observability)" "snapshot trace events resources daemon topology cgroup layerstack resource_isolation resource_efficiency"
}

@test "operations, owners and defaults" {
	need jq
	sandbox-catalog-export >out
	is "$(jq -c '.domains.runtime.operations[] | select(.name == "read_command_lines") | .args[] | [.name, .kind, .required, .default]' out | head -3)" \
'["command_session_id","string",true,null]
["start_offset","integer",false,"0"]
["limit","integer",false,"200"]'
	is "$(jq -c '.domains.runtime.operations[] | select(.name == "create_workspace_session").args[0].default' out)" '"shared"'
	is "$(jq -r '.domains.runtime.routes[].execution_owner' out | sort -u)" runtime
	is "$(jq -r '.domains.manager.routes[].execution_owner' out | sort -u)" manager
	run -1 grep -E 'squash_layerstack"|export_layerstack|file_list' out
}
