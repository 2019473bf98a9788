# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

ops=$SB_TOP/svc/ops

# change FILE JQ-PROGRAM: a copy of the operations with one change.
change() {
	rm -rf ops && cp -R "$ops" ops
	jq "$2" "$ops/$1" >"ops/$1"
}

# finds TEXT: the linter says that.
finds() {
	run -1 "$SB_T/oplint" ops "$SB_BIN"
	has "$output" "$1"
}

@test "the linter finds nothing in the operations" {
	run -0 "$SB_T/oplint" "$ops" "$SB_BIN"
	is "$output" ""
}

@test "the linter finds what does not fit together" {
	need jq
	change runtime/file_read.json '.related += ["nobody"]'
	finds "file_read: related to no nobody"
	change runtime/file_read.json '.related += ["list_sandboxes"]'
	finds "file_read: related to no list_sandboxes"
	change runtime/file_read.json '.family = "files"'
	finds "file_read: no family files"
	change runtime/file_read.json '.order = 50'
	finds "order 50 is that of"
	change runtime/file_read.json '.box.argv[0] = "sb-nobody"'
	finds "file_read: no program sb-nobody"
	change runtime/file_read.json '.args[1].flag = "--path"'
	finds "file_read: flag --path stands for two"
	change runtime/file_read.json '.args[1].aliases = ["--path"]'
	finds "file_read: flag --path stands for two"
	change runtime/file_read.json '.args[1].flag = "--request-id"'
	finds "file_read: flag --request-id is an option of the command line"
	change runtime/file_read.json '.args[1].aliases = ["--jq"]'
	finds "file_read: flag --jq is an option of the command line"
	change runtime/file_read.json '.args[1].flag = "--a=b"'
	finds "file_read: flag --a=b is an option of the command line"
	change runtime/file_read.json '.scope = "system_or_sandbox"'
	finds "file_read: of runtime, and not of a sandbox"
	change runtime/file_read.json 'del(.box)'
	finds "file_read: is sent on, and the box does nothing"
	change runtime/file_read.json '.unknown = 1'
	finds "runtime/file_read.json: unknown: unknown"
	change observability/history.json 'del(.args[0])'
	finds "history: no argument sandbox_id"
	change families.json 'del(.runtime[0].title)'
	finds "families.json: runtime[0]: needs an id, a title"
	change families.json '.runtime[1].id = "command"'
	finds "families.json: runtime[1]: this id is taken"
	change families.json '.runtime[1].order = 1'
	finds "families.json: runtime[1].order: unknown"
	change families.json '.'
	cp ops/runtime/file_read.json ops/management/
	finds "of management, and not of the system"
	change families.json '.'
	touch ops/runtime/README
	finds "runtime: has files that are no operations"
}

@test "what is ended when its client goes only reads, lists or waits" {
	need jq
	jq -r 'select(.cancel) | .name' "$ops"/*/*.json >ended
	run ! grep -E '^(create|destroy|start|stop|publish|exec|write|end|kill|resize|squash|export|file_write|file_edit)' ended
	is "$(jq -r 'select(.cancel and .activity) | .name' "$ops"/*/*.json)" ""
	is "$(grep -cxE 'file_read|file_blame|history|list_(commands|files|sandboxes)|snapshot|wait_command' ended)" 8
}

@test "the operations of the reference keep their place" {
	need jq
	is "$(cd "$ops/runtime" && jq -s -r 'sort_by(.order)[] | select(.order < 1000) | .name' ./*.json | tr '\n' ' ')" \
	    "exec_command write_command_stdin read_command_lines file_read file_write file_edit file_blame create_workspace_session publish_workspace_session destroy_workspace_session "
}

@test "the operations of the manager keep theirs" {
	need jq
	is "$(cd "$ops/management" && jq -s -r 'sort_by(.order)[] | select(.order < 1000) | .name' ./*.json | tr '\n' ' ')" \
	    "create_sandbox list_docker_images list_workspace_directories destroy_sandbox list_sandboxes inspect_sandbox "
	is "$(jq -r '.args[] | select(.flag) | .flag, .aliases[]' "$ops/management/create_sandbox.json" | tr '\n' ' ')" \
	    "--workspace-bind-root --workspace-root "
}

# Name, and kind where it is no string, with * for required and = for what
# clients fill in.
@test "their arguments are those of the interface, in order" {
	need jq
	args() { jq -r '[.args[] | select(.ours != true) | .name + (if .required then "*" else "" end) +
	    (if .kind == "string" or .kind == "path" then "" else " " + .kind end) +
	    (if .client_default == null then "" else "=" + (.client_default | tostring) end)] | join(", ")' "$ops"/*/"$1.json"; }
	is "$(args exec_command)" "workspace_session_id, cmd*, timeout_ms integer, yield_time_ms integer"
	is "$(args write_command_stdin)" "command_session_id*, stdin*, yield_time_ms integer"
	is "$(args read_command_lines)" "command_session_id*, start_offset integer=0, limit integer=200"
	is "$(args file_read)" "path*, offset integer=1, limit integer=2000, workspace_session_id"
	is "$(args file_write)" "path*, content*, workspace_session_id"
	is "$(args file_edit)" "path*, edits* json_array, workspace_session_id"
	is "$(args file_blame)" "path*"
	is "$(args create_workspace_session)" "network_profile=shared"
	is "$(args publish_workspace_session)" "workspace_session_id*, grace_s float"
	is "$(args destroy_workspace_session)" "workspace_session_id*, grace_s float"
	is "$(args create_sandbox)" "image*, workspace_root*, count integer=1"
	is "$(args list_docker_images)" ""
	is "$(args list_workspace_directories)" "path"
	is "$(args destroy_sandbox)" "sandbox_id*"
	is "$(args list_sandboxes)" ""
	is "$(args inspect_sandbox)" "sandbox_id*"
	is "$(args snapshot)" "sandbox_id"
	is "$(args layerstack)" "sandbox_id*, workspace_id, window_ms integer=60000"
}
