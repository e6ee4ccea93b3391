package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// procMap is a line of /proc/PID/maps that says it is executable.
type procMap struct {
	kcdata.LinuxMapping
	path string
}

// procMaps reads them; nil if the process is gone or has none. The page that the
// kernel lends to every process outside its own mappings is not one of them.
func procMaps(pid int) (out []procMap) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	for line := range strings.Lines(string(text)) {
		var m procMap
		var perms string
		if _, err := fmt.Sscanf(line, "%x-%x %s %x %x:%x %d", &m.Start, &m.End, &perms, &m.Offset, &m.DevMajor, &m.DevMinor, &m.Inode); err != nil {
			panic(err)
		}
		if fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 6); len(fields) == 6 {
			m.path = strings.TrimLeft(fields[5], " ")
		}
		if perms[2] == 'x' && m.path != "[vsyscall]" {
			out = append(out, m)
		}
	}
	return out
}

// sameMapping says how a recorded mapping differs from a line of /proc; "": not.
func sameMapping(got kcdata.Mapping, want procMap) string {
	path, deleted := strings.CutSuffix(want.path, " (deleted)")
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"start", got.Start, want.Start}, {"end", got.End, want.End}, {"offset", got.Offset, want.Offset},
		{"inode", got.Inode, want.Inode}, {"device", [2]uint32{got.DevMajor, got.DevMinor}, [2]uint32{want.DevMajor, want.DevMinor}},
		{"in the window", got.Flags&kcdata.MappingInWindow != 0, true},
		{"vdso", got.Flags&kcdata.MappingVDSO != 0, path == "[vdso]"},
		{"deleted", got.Flags&kcdata.MappingDeleted != 0, deleted},
		{"no file", got.Flags&(kcdata.MappingAnon|kcdata.MappingVDSO) != 0, want.Inode == 0},
	} {
		if c.got != c.want {
			return fmt.Sprintf("%s %v, /proc says %v", c.what, c.got, c.want)
		}
	}
	if want.Inode == 0 {
		path = ""
	}
	if tail, cut := strings.CutPrefix(got.Path, "…"); cut && strings.Count(tail, "/") == 8 && strings.HasSuffix(path, tail) {
		return ""
	}
	if got.Path != path {
		return fmt.Sprintf("path %q, /proc says %q", got.Path, path)
	}
	return ""
}

// mapWalkLimit is MAP_WALK_NS of record_maps.h.
const mapWalkLimit = 2_000_000

// checkMaps compares a task of which /proc said the same before and after.
func checkMaps(t *testing.T, task *kcdata.Task, want []procMap, ours bool) {
	t.Helper()
	w := task.MapWalk
	if mayBeLate(w, len(want), ours) {
		want = want[:w.Written]
	} else if w == nil || w.Flags&(kcdata.MapWalkWhole|kcdata.MapWalkAsked) != kcdata.MapWalkWhole|kcdata.MapWalkAsked || w.Torn != 0 || int(w.Found) != len(want) {
		t.Errorf("task %d (%s): walk %+v, /proc has %d", task.ID, task.Name, w, len(want))
		return
	}
	if int(w.Written) != len(task.Mappings) {
		t.Errorf("task %d (%s): %d mappings, walk %+v", task.ID, task.Name, len(task.Mappings), w)
		return
	}
	for i, m := range task.Mappings {
		if why := sameMapping(m, want[i]); why != "" {
			t.Errorf("task %d (%s), mapping %#x: %s", task.ID, task.Name, want[i].Start, why)
		}
	}
}

// mayBeLate reports whether a walk came to its time limit, and says so: of an
// emulated CPU any may, else one of a process that is not ours: nobody knows how
// large that is.
func mayBeLate(w *kcdata.LinuxMapWalk, mappings int, ours bool) bool {
	late := w != nil && w.Flags&kcdata.MapWalkWhole == 0 && w.WalkNs > mapWalkLimit && int(w.Found) < mappings
	return late && (timeFactor > 1 || !ours)
}

func sameProcMaps(a, b []procMap) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// allProcMaps is what /proc says of every process.
func allProcMaps() map[uint64][]procMap {
	out := map[uint64][]procMap{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		if m := procMaps(pid); m != nil {
			out[uint64(pid)] = m
		}
	}
	return out
}

// The executable mappings that the window takes of every process whose mappings
// stand still are those that /proc has, file by file.
func TestWindowMapsAreWhatProcSays(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	testneed.Slow(t)
	requireBPF(t)
	var ours []*mapped
	for _, n := range []int{1, 50, 2000} {
		ours = append(ours, startMapper(t, "still", n))
	}
	gone := startMapper(t, "still", 40)
	if err := os.Remove(gone.path); err != nil {
		t.Fatal(err)
	}
	ours = append(ours, gone)
	forEngines(t, func(t *testing.T, engineName string) {
		s := openTest(t, Options{Engine: engineName, ArrivalBudget: time.Second}, engine.Hooks{Specs: bpftest.Knobs{AllMaps: true}, KeepUserSide: true})
		before := allProcMaps()
		_, snap, _ := captureWhole(t, s, Request{})
		after := allProcMaps()
		compared, mappings := map[uint64]bool{}, 0
		for _, task := range snap.Tasks {
			if sameProcMaps(before[task.ID], after[task.ID]) && len(after[task.ID]) > 0 {
				isOurs := slices.ContainsFunc(ours, func(m *mapped) bool { return uint64(m.pid) == task.ID })
				checkMaps(t, task, after[task.ID], isOurs)
				compared[task.ID] = true
				mappings += len(after[task.ID])
			}
		}
		for _, m := range ours {
			if !compared[uint64(m.pid)] {
				t.Errorf("mapper %d was not compared", m.pid)
			}
		}
		t.Logf("%d mappings of %d processes", mappings, len(compared))
	})
}

// More than there is room for: what is written is right, and the rest counted.
func TestWindowMapsWithoutRoom(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	m := startMapper(t, "dense", 1400)
	forEngines(t, func(t *testing.T, engineName string) {
		s := openTest(t, Options{Engine: engineName}, engine.Hooks{Specs: bpftest.Knobs{AllMaps: true}, KeepUserSide: true})
		_, snap, _ := captureWhole(t, s, Request{Pids: []int{m.pid}})
		task := tasksByID(snap)[uint64(m.pid)]
		checkMaps(t, task, procMaps(m.pid), true)
		if task.MapWalk.Written >= task.MapWalk.Found && !mayBeLate(task.MapWalk, 700, true) {
			t.Errorf("walk %+v, want some without room", task.MapWalk)
		}
	})
}

// A process that changes its mappings all the time: each recorded mapping is one
// that it makes, with the part of the file that belongs there.
func TestWindowMapsOfAProcessThatMaps(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	requireBPF(t)
	const n = 64
	churn, split := startMapper(t, "churn", n), startMapper(t, "split", n)
	room := func(m *mapped, k kcdata.Mapping) bool { return k.Start >= m.base && k.Start < m.base+2*n*page }
	right := map[*mapped]func(k kcdata.Mapping) bool{
		churn: func(k kcdata.Mapping) bool {
			at := k.Start - churn.base
			return at%(2*page) == 0 && k.End == k.Start+page && k.Offset == at/2
		},
		split: func(k kcdata.Mapping) bool {
			return k.Start%page == 0 && k.Offset == k.Start-split.base && k.End > k.Start && k.End <= split.base+n*page
		},
	}
	forEngines(t, func(t *testing.T, engineName string) {
		s := openTest(t, Options{Engine: engineName, ArrivalBudget: time.Second}, engine.Hooks{Specs: bpftest.Knobs{AllMaps: true}, KeepUserSide: true})
		seen, torn, held := 0, uint32(0), 0
		stops := testneed.Length(20, 60)
		for range stops {
			_, snap, _ := captureWhole(t, s, Request{Pids: []int{churn.pid, split.pid}})
			for m, is := range right {
				task := tasksByID(snap)[uint64(m.pid)]
				if task == nil || task.MapWalk == nil {
					t.Fatalf("mapper %d: %+v", m.pid, task)
				}
				torn += task.MapWalk.Torn
				if task.MapWalk.Flags&kcdata.MapWalkWriter != 0 {
					held++
				}
				for _, k := range task.Mappings {
					if !room(m, k) {
						continue
					}
					seen++
					dev := [2]uint32{unix.Major(m.file.Dev), unix.Minor(m.file.Dev)}
					if !is(k) || k.Inode != m.file.Ino || [2]uint32{k.DevMajor, k.DevMinor} != dev || filepath.Base(k.Path) != "mapped file" {
						t.Errorf("room at %#x, file %d of %v: %+v never was", m.base, m.file.Ino, dev, k)
					}
				}
			}
		}
		if seen == 0 {
			t.Error("no capture saw one of the mappings")
		}
		t.Logf("%d seen; torn %d; lock held at %d of %d stops", seen, torn, held, stops*len(right))
	})
}

// Nothing is taken of a process that /proc can answer for, and nothing at all
// with --redact.
func TestWindowMapsAreNotTakenWithoutNeed(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	m := startMapper(t, "still", 50)
	forEngines(t, func(t *testing.T, engineName string) {
		for name, s := range map[string]*Session{
			"free":     session(t, Options{Engine: engineName}),
			"redacted": openTest(t, Options{Engine: engineName, Redact: true}, engine.Hooks{Specs: bpftest.Knobs{AllMaps: true}}),
		} {
			_, snap, _ := captureWhole(t, s, Request{Pids: []int{m.pid}})
			task := tasksByID(snap)[uint64(m.pid)]
			inWindow := slices.ContainsFunc(task.Mappings, func(k kcdata.Mapping) bool { return k.Flags&kcdata.MappingInWindow != 0 })
			if task.MapWalk != nil || inWindow || (len(task.Mappings) > 0) != (name == "free") {
				t.Errorf("%s: walk %+v, mappings %+v", name, task.MapWalk, task.Mappings)
			}
		}
	})
}
