package kcdata

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A task's mappings come piece by piece from the window, each with a name after it
// or none; where /proc answered too, its answer is the one that counts.
func TestMappingsFromTheWindow(t *testing.T) {
	libc := LinuxMapping{Start: 0x10, End: 0x20, Flags: MappingInWindow}
	code := LinuxMapping{Start: 0x30, End: 0x40, Flags: MappingInWindow | MappingAnon}
	read := LinuxMapping{Start: 0x10, End: 0x20, Path: 1}
	window := func(w ItemWriter) error {
		return errors.Join(w.StructArray(TypeLinuxMapping, []LinuxMapping{libc}), w.String(TypeLinuxMapName, "…/lib/libc.so.6"),
			w.StructArray(TypeLinuxMapping, []LinuxMapping{code}))
	}
	proc := func(w ItemWriter) error {
		return errors.Join(w.StructArray(TypeLinuxMapping, []LinuxMapping{read}), w.Bytes(TypeLinuxMapStrings, []byte("\x00/usr/lib/libc.so.6\x00")))
	}
	both := []Mapping{{LinuxMapping: libc, Path: "…/lib/libc.so.6"}, {LinuxMapping: code}}
	for name, c := range map[string]struct {
		write []func(ItemWriter) error
		want  []Mapping
	}{
		"window":           {[]func(ItemWriter) error{window}, both},
		"window then proc": {[]func(ItemWriter) error{window, proc}, []Mapping{{LinuxMapping: read, Path: "/usr/lib/libc.so.6"}}},
		"proc then window": {[]func(ItemWriter) error{proc, window}, []Mapping{{LinuxMapping: read, Path: "/usr/lib/libc.so.6"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ParseSnapshot(taskWith(t, c.write...))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, s.Tasks[0].Mappings); d != "" || len(s.Problems) > 0 {
				t.Errorf("problems %q, -want +got:\n%s", s.Problems, d)
			}
		})
	}
}

func TestMapNameWithoutMapping(t *testing.T) {
	s, err := ParseSnapshot(taskWith(t, func(w ItemWriter) error { return w.String(TypeLinuxMapName, "x") }))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Problems) != 1 || len(s.Tasks[0].Mappings) != 0 {
		t.Errorf("problems %q, mappings %v", s.Problems, s.Tasks[0].Mappings)
	}
}

// taskWith is a file with one task that holds what the functions write.
func taskWith(t *testing.T, write ...func(ItemWriter) error) []byte {
	t.Helper()
	return buffer(t, MagicStackshot, func(w ItemWriter) {
		ok(t, w.BeginContainer(TypeTask, 7))
		for _, f := range write {
			ok(t, f(w))
		}
		ok(t, w.EndContainer(7))
	})
}
