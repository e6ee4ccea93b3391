package report

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/model"
	"stackshot/kcdata"
)

// TestJSONIsDocumented: every key that JSON can write stands, in backquotes, in
// the document, and so does every value of "class" and "reason".
func TestJSONIsDocumented(t *testing.T) {
	want := []string{"max_pause", "no_space", "error", "vanished", "unknown"}
	for c := range model.ClassCount {
		want = append(want, c.String())
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Counts](), reflect.TypeFor[jsonFrame]()} {
		want = append(want, golden.Keys(typ)...)
	}
	want = append(want, golden.ObjectKeys(t, "json*.go", "../account/*.go")...)
	want = slices.DeleteFunc(want, func(key string) bool { return key == "tgid" }) // of take --json
	golden.Documented(t, "../../docs/report-json.md", 150, want)
}

// TestR4MissingIsAbsent: a thread of which nothing was read has no zeros.
func TestR4MissingIsAbsent(t *testing.T) {
	s := &kcdata.Snapshot{Tasks: []*kcdata.Task{{ID: 1<<40 + 5, Threads: []*kcdata.Thread{{ID: 3}}}}}
	var d map[string]any
	if err := json.Unmarshal(jsonOf(t, s, Options{}), &d); err != nil {
		t.Fatal(err)
	}
	task := d["tasks"].([]any)[0].(map[string]any)
	keys := func(m map[string]any) map[string]bool {
		out := map[string]bool{}
		for k := range m {
			out[k] = true
		}
		return out
	}
	set := func(names ...string) map[string]bool {
		out := map[string]bool{}
		for _, k := range names {
			out[k] = true
		}
		return out
	}
	if got, want := keys(task), set("id", "name", "kernel", "exiting", "self", "in_exec", "core_dumping", "threads"); !reflect.DeepEqual(got, want) {
		t.Errorf("task keys %v, want %v", got, want)
	}
	thread := task["threads"].([]any)[0].(map[string]any)
	if got, want := keys(thread), set("id", "tid", "class", "state", "self", "stack_note", "kernel_stack", "kernel_stack_truncated"); !reflect.DeepEqual(got, want) {
		t.Errorf("thread keys %v, want %v", got, want)
	}
	if task["id"] != "0x10000000005" {
		t.Errorf("task id %v", task["id"])
	}
	if machine := d["machine"].(map[string]any); len(machine) != 0 || d["capture"] != nil {
		t.Errorf("machine %v, capture %v", machine, d["capture"])
	}
	for _, list := range []string{"cpus", "alarms", "warnings", "problems", "left_out", "modules", "tasks"} {
		if _, ok := d[list].([]any); !ok {
			t.Errorf("%s is %v, not a list", list, d[list])
		}
	}
}
