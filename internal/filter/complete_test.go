package filter

import (
	"reflect"
	"testing"
)

func TestComplete(t *testing.T) {
	for text, want := range map[string][]string{
		"":                    append(Fields(), "not"),
		"s":                   {"state"},
		"state=st":            {"state=stopped"},
		"pid=1 a":             {"pid=1 and"},
		"pid=1 and (c":        {"pid=1 and (cgroup", "pid=1 and (cpu"},
		"not wait!=rw":        {"not wait!=rwsem", "not wait!=rwsem_read", "not wait!=rwsem_write"},
		"name=x":              nil,
		"(pid=1 or state=D) ": {"(pid=1 or state=D) and", "(pid=1 or state=D) or"},
	} {
		if got := Complete(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
