package collate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"stackshot/internal/capture"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
	"strings"
	"testing"
)

// What did not fit into the time for files is marked and said.
func TestBuildIDsWithinTheirTime(t *testing.T) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	l := new(Collator).newLoadInfo(new(capture.Wants))
	l.left = 0
	task := &taskBytes{linux: kcdata.LinuxTask{Tgid: uint32(os.Getpid())}}
	l.task(task, procfs.File{Data: maps})
	files := 0
	for _, m := range task.maps {
		if m.Inode == 0 {
			continue
		}
		files++
		if m.Flags&kcdata.MappingSkipped == 0 || m.BuildID != nil || m.BuildIDLen != 0 {
			t.Errorf("%+v", m)
		}
	}
	if notes := strings.Join(task.load.notes, "; "); files == 0 || !strings.Contains(notes, "the 2s for all files were spent") {
		t.Errorf("%d files: %q", files, notes)
	}
}

// windowTask is a task whose mappings the stop recorded.
func windowTask(t *testing.T) *taskBytes {
	t.Helper()
	w := kcdata.NewWriter(make([]byte, 1<<16))
	one := func(m kcdata.LinuxMapping, name string) error {
		m.Flags |= kcdata.MappingInWindow
		err := errors.Join(w.Define(kcdata.TypeLinuxMapping), w.StructArray(kcdata.TypeLinuxMapping, []kcdata.LinuxMapping{m}))
		if name != "" {
			err = errors.Join(err, w.String(kcdata.TypeLinuxMapName, name))
		}
		return err
	}
	err := errors.Join(
		w.BeginContainer(kcdata.TypeTask, 7),
		w.Struct(kcdata.TypeLinuxTask, &kcdata.LinuxTask{Tgid: 1<<30 + 7}),
		one(kcdata.LinuxMapping{Start: 0x1000, End: 0x2000, Inode: 5, DevMajor: 8}, "…/lib/libc.so.6"),
		one(kcdata.LinuxMapping{Start: 0x4000, End: 0x5000, Flags: kcdata.MappingAnon}, ""),
		w.BeginContainer(kcdata.TypeThread, 7), w.EndContainer(7),
		w.String(kcdata.TypeLinuxCgroupPath, "/kept"),
		w.EndContainer(7))
	if err != nil {
		t.Fatal(err)
	}
	task, err := openTask(nil, []capture.Part{{Pieces: [][]byte{w.Written()}}})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// Where /proc hangs the stop's own mappings stay, with what is known of their
// files; where it answers they make room.
func TestWindowMappings(t *testing.T) {
	for _, c := range []struct {
		maps procfs.File
		want string
	}{
		{procfs.File{Err: &procfs.TimeoutError{Path: "maps"}}, "1000 /usr/lib/libc.so.6 0102, 4000  "},
		{procfs.File{Data: []byte("3000-4000 r-xp 0 0:0 0 \n")}, "3000  "},
	} {
		l := new(Collator).newLoadInfo(new(capture.Wants))
		l.known[fileID{major: 8, inode: 5}] = known{path: "/usr/lib/libc.so.6", build: []byte{1, 2}}
		task := windowTask(t)
		l.task(task, c.maps)
		out := &task.load
		if (len(out.maps) > 0) != (c.maps.Err != nil) || len(out.notes) > 0 {
			t.Errorf("%v: %q, %q", c.maps.Err, out.maps, out.notes)
		}
		w := &kcdata.StickyWriter{ItemWriter: kcdata.NewBuffer(0)}
		out.write(w, task.maps)
		if w.Err != nil {
			t.Fatal(w.Err)
		}
		task.items.InsertBefore(task.end, w.ItemWriter.(*kcdata.Writer).Written())
		begin, end := kcdata.NewWriter(make([]byte, 64)), kcdata.NewWriter(make([]byte, 64))
		file := new(bytes.Buffer)
		_, err := task.items.WriteTo(file)
		if err := errors.Join(err, begin.Begin(kcdata.MagicStackshot), end.End()); err != nil {
			t.Fatal(err)
		}
		snap, err := kcdata.ParseSnapshot(slices.Concat(begin.Written(), file.Bytes(), end.Written())) // of a file that has nothing else
		if err != nil || len(snap.Problems) > 0 {
			t.Fatal(err, snap)
		}
		var got []string
		for _, m := range snap.Tasks[0].Mappings {
			if (m.Flags&kcdata.MappingInWindow != 0) != (c.maps.Err != nil) {
				t.Errorf("%+v", m)
			}
			got = append(got, fmt.Sprintf("%x %s %x", m.Start, m.Path, m.BuildID))
		}
		if strings.Join(got, ", ") != c.want || snap.Tasks[0].Cgroup != "/kept" {
			t.Errorf("%v: %q, want %q", c.maps.Err, got, c.want)
		}
	}
}

// What the stop could not tell of mappings that only it could read is told.
func TestWindowMapsSayWhatTheyLack(t *testing.T) {
	for _, c := range []struct {
		walk kcdata.LinuxMapWalk
		want string
	}{
		{kcdata.LinuxMapWalk{}, ""},
		{kcdata.LinuxMapWalk{Flags: kcdata.MapWalkWriter | kcdata.MapWalkWhole, Found: 2, Written: 2}, ""},
		{kcdata.LinuxMapWalk{Flags: kcdata.MapWalkWriter | kcdata.MapWalkWhole, Found: 9, Written: 2, Torn: 3}, "being changed: 3; without room: 7"},
		{kcdata.LinuxMapWalk{Flags: kcdata.MapWalkWriter, Refused: 1}, "pointers not followed, to what is not ordinary memory: 1; the last ones were not reached"},
	} {
		x := windowMaps{walk: c.walk}
		if got := x.lacks(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.walk, got, c.want)
		}
	}
}
