package testread

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// file is a plain buffer with what write writes; defined: behind all definitions.
func file(t *testing.T, defined bool, write func(w kcdata.ItemWriter) error) []byte {
	t.Helper()
	w := kcdata.NewWriter(make([]byte, 1<<18))
	err := w.Begin(kcdata.MagicStackshot)
	if defined {
		for _, typ := range kcdata.Definitions() {
			err = errors.Join(err, w.Define(typ))
		}
	}
	if err = errors.Join(err, write(w), w.End()); err != nil {
		t.Fatal(err)
	}
	return w.Written()
}

// Of several texts of one container, and of texts of many lengths in one file, every
// one survives.
func TestTextsOfAllLengthsSurvive(t *testing.T) {
	plain := file(t, true, func(w kcdata.ItemWriter) (err error) {
		for id := range uint64(40) {
			err = errors.Join(err, w.BeginContainer(kcdata.TypeTask, id),
				w.String(kcdata.TypeLinuxCgroupPath, strings.Repeat("/x", int(id+1))),
				w.String(kcdata.TypeLinuxEnrichFailed, "exe: "+strings.Repeat("a", int(id))),
				w.String(kcdata.TypeLinuxEnrichFailed, "maps: b"),
				w.BeginContainer(kcdata.TypeThread, id), w.String(kcdata.TypeThreadName, strings.Repeat("n", int(id))),
				w.Bytes(kcdata.TypeLinuxUserHow, make([]byte, id)), w.EndContainer(id), w.EndContainer(id))
		}
		return errors.Join(err, w.String(kcdata.TypeLinuxWarning, "first: one"), w.String(kcdata.TypeLinuxWarning, "second: two"))
	})
	n, faults, err := Decode(plain)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	s, err := kcdata.ParseSnapshot(plain)
	if err != nil || len(s.Warnings) != 2 || len(s.Tasks[3].EnrichFailed) != 2 {
		t.Fatalf("%v, %+v", err, s)
	}
	if d := differences(n, s); d != nil {
		t.Error(d)
	}
}

// What that decoder misreads is found: the test above can fail.
func TestFaultsAreFound(t *testing.T) {
	for what, c := range map[string]struct {
		write func(kcdata.ItemWriter) error
		want  string
	}{
		"undefined":    {func(w kcdata.ItemWriter) error { return w.Struct(kcdata.TypeLinuxMapWalk, kcdata.LinuxMapWalk{}) }, "no definition"},
		"undefined id": {func(w kcdata.ItemWriter) error { return w.Bytes(0x7777, []byte("x")) }, "no definition"},
		"repeated":     {func(w kcdata.ItemWriter) error { return errors.Join(w.Uint64Desc("a", 1), w.Uint64Desc("a", 2)) }, "is lost"},
		"a task twice": {func(w kcdata.ItemWriter) error {
			return errors.Join(w.BeginContainer(kcdata.TypeTask, 1), w.EndContainer(1), w.BeginContainer(kcdata.TypeTask, 1), w.EndContainer(1))
		}, "the first is lost"},
		"a long path": {func(w kcdata.ItemWriter) error { return w.String(kcdata.TypeCrashProcPath, strings.Repeat("x", 1025)) }, "is cut"},
		"another size": {func(w kcdata.ItemWriter) error {
			return errors.Join(w.Define(kcdata.TypeLinuxSignals), w.Array(kcdata.TypeLinuxSignals, 8, 1, make([]byte, 8)))
		}, "is read as 24"},
		"padding": {func(w kcdata.ItemWriter) error {
			err := errors.Join(w.Define(kcdata.TypeLinuxSignals), w.Array(kcdata.TypeLinuxSignals, 24, 1, make([]byte, 24)))
			b := w.(*kcdata.Writer).Written()
			b[len(b)-8] = 1
			return err
		}, "padding is not zero: 01"},
		"reserved": {func(w kcdata.ItemWriter) error {
			return errors.Join(w.Define(kcdata.TypeLinuxMapWalk), w.Struct(kcdata.TypeLinuxMapWalk, kcdata.LinuxMapWalk{Reserved: 2}))
		}, "linux_map_walk.reserved is not zero: 02"},
		"behind a NUL": {func(w kcdata.ItemWriter) error {
			return w.Bytes(kcdata.TypeThreadName, []byte("a\x00b\x00"))
		}, "pth_name behind its NUL is not zero: 62"},
		"not ended": {func(w kcdata.ItemWriter) error {
			return errors.Join(w.Define(kcdata.TypeLinuxWarning), w.Bytes(kcdata.TypeLinuxWarning, []byte("x")))
		}, "no NUL"},
	} {
		_, faults, err := Decode(file(t, false, c.write))
		if err != nil || len(faults) != 1 || !strings.Contains(faults[0], c.want) {
			t.Errorf("%s: %v, %q, want %q", what, err, faults, c.want)
		}
	}
}

// Two lengths of one type, each defined before its item, as files had them: the first
// is misread, though its own definition stands before it.
func TestTheLastDefinitionHoldsForAll(t *testing.T) {
	plain := file(t, false, func(w kcdata.ItemWriter) error {
		signals := kcdata.LinuxSignals{Pending: 1}
		return errors.Join(w.Define(kcdata.TypeLinuxSignals), w.BeginContainer(kcdata.TypeTask, 1), w.Struct(kcdata.TypeLinuxSignals, signals), w.EndContainer(1),
			w.Define(kcdata.TypeLinuxSignals), w.BeginContainer(kcdata.TypeTask, 2), w.Struct(kcdata.TypeLinuxSignals, signals), w.EndContainer(2))
	})
	name := bytes.LastIndex(plain, []byte("pending"))
	name = bytes.LastIndex(plain[:name], []byte("pending")) // of the second definition's first field
	plain[name-8+4] = 4                                     // its size
	plain[name-8+1] = 7                                     // a u32
	n, faults, err := Decode(plain)
	if err != nil || len(faults) != 1 || !strings.Contains(faults[0], "otherwise: items before this are misread") {
		t.Errorf("%v, %q", err, faults)
	}
	for id := range uint64(2) {
		if got := n.In["task_snapshots"][id+1].Items["linux_signals"]; got == nil {
			t.Errorf("task %d: nothing", id+1)
		}
	}
}

// A file of before is misread; in today's form it is read, and says the same.
func TestOldFileIsMisreadAndRenewed(t *testing.T) {
	packed, err := os.ReadFile("../../kcdata/testdata/plain-strings.kcdata.zst")
	if err != nil {
		t.Fatal(err)
	}
	old, _, err := kcdata.Unwrap(packed, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, faults, err := Decode(old); err != nil || !strings.Contains(strings.Join(faults, " "), "0x4c8b has no definition") {
		t.Errorf("%v, %q", err, faults)
	}
	plain, err := kcdata.Renew(old)
	if err != nil {
		t.Fatal(err)
	}
	Want(t, plain)
}
