# SPDX-License-Identifier: MIT
# jq -r -f t/mcp-rules.jq: of an array of tools, a line for each rule that some
# client enforces and one of them breaks.
def keyword: . as $k | any("type", "properties", "required",
    "additionalProperties", "items", "description", "enum", "default",
    "minimum", "maximum"; . == $k);

# A schema: at . , named $at. Of a property it has a description.
def schema($at; $property):
    if type != "object" then "\($at): no object" else
	(keys[] | select(keyword | not) | "\($at): keyword \(.)"),
	(select(.type | type != "string") | "\($at): no single type"),
	(select($property and (.description | type != "string")) | "\($at): no description"),
	(select(.type == "array" and (.items.type | type != "string")) | "\($at): items without a type"),
	(select(has("enum") and (.type != "string" or any(.enum[]; type != "string"))) | "\($at): enum of others than strings"),
	(select(any(.minimum, .maximum; type == "number" and (. > 9007199254740992 or . < -9007199254740992))) | "\($at): bound beyond 2^53"),
	(select(.default and ({string: "string", integer: "number", number: "number", boolean: "boolean", array: "array"}[.type] != (.default | type))) | "\($at): default of another type"),
	(select(.default and ((.description // "") | test("Default: ") | not)) | "\($at): default not in words"),
	(select(.minimum and .minimum > 0 and ((.description // "") | test("At least|From") | not)) | "\($at): minimum not in words"),
	(select(.maximum and ((.description // "") | test("At most|From|at most") | not)) | "\($at): maximum not in words"),
	(select(.type == "object") |
	    (select(.properties | type != "object") | "\($at): no properties"),
	    (select(.required | type != "array") | "\($at): no required"),
	    (select(.additionalProperties != false) | "\($at): additionalProperties"),
	    (.properties as $p | .required[]? | select(in($p) | not) | "\($at): required is no property: \(.)"),
	    (.properties // {} | to_entries[] |
		(select(.key | test("^[a-z][a-z0-9_]{0,39}$") | not) | "\($at).\(.key): name"),
		(.key as $k | .value | schema("\($at).\($k)"; true)))),
	(select(.type == "array") | .items | schema("\($at)[]"; false))
    end;

(if type != "array" then "no array" else empty end),
(.[] | .name as $n |
    (select($n | test("^[a-z][a-z0-9_]{0,39}$") | not) | "\($n): name"),
    (select(.description | type != "string" or length > 1000 or length < 20) | "\($n): description"),
    (select(.inputSchema.type != "object") | "\($n): root is no object"),
    (.inputSchema | schema($n; false)),
    (select([.annotations[]?] | map(type) | unique != ["boolean"]) | "\($n): annotations"),
    (select(.annotations.readOnlyHint and .annotations.destructiveHint) | "\($n): reads and destroys")),
([.[].name] | group_by(.)[] | select(length > 1) | "\(.[0]): twice"),
(select(length > 18) | "too many"),
(paths(. == null) | "null at \(tojson)")
