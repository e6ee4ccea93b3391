package snapshot

import (
	"errors"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"stackshot/internal/bpf"
	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// noFields are objects that see no field of task_struct which names a lock, as on a
// kernel that has none.
type noFields struct{ bpftest.Knobs }

func (k noFields) Pull() (*ebpf.CollectionSpec, error) { return withoutFields(k.Knobs.Pull()) }
func (k noFields) Trap() (*ebpf.CollectionSpec, error) { return withoutFields(k.Knobs.Trap()) }

func withoutFields(spec *ebpf.CollectionSpec, err error) (*ebpf.CollectionSpec, error) {
	if err != nil {
		return nil, err
	}
	v := spec.Variables["test_no_fields"]
	if v == nil {
		return nil, errors.New("the tests' object has no test_no_fields")
	}
	return spec, v.Set(uint32(1))
}

// lockOf is what a thread's record says of a lock.
type lockOf struct {
	lock                 uint64
	ownerTid, ownerTgid  uint32
	start                uint64
	mutex, rwsem, wanted bool
}

func lockIn(w *kcdata.LinuxWait) lockOf {
	if w == nil {
		return lockOf{}
	}
	return lockOf{w.Lock, w.OwnerTid, w.OwnerTgid, w.OwnerStart, w.Kind == kcdata.LockMutex,
		w.Kind == kcdata.LockRWSem || w.Kind == kcdata.LockRWSemRead || w.Kind == kcdata.LockRWSemWrite, true}
}

// TestScanIsTheFields: who waits for a mutex and for an rwsem of the kernel has the same
// lock and the same owner in its record, be they of the kernel's fields or, with these
// switched off, of the scan of its stack; and the owner is the thread that has the lock.
func TestScanIsTheFields(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	f := testtask.Start(t, testtask.MutexWait, testtask.InodeWait)
	eachEngine(t, func(t *testing.T, engineName string) {
		fields, sources := lockRecords(t, engineName, bpftest.Knobs{}, f)
		scan, _ := lockRecords(t, engineName, noFields{}, f)
		for _, k := range []testtask.Kind{testtask.MutexWait, testtask.InodeWait} {
			first, second, owner := f.One(k, "first").Pid, f.One(k, "second").Pid, f.One(k, "owner").Pid
			for how, records := range map[string]map[int]*kcdata.Thread{"fields": fields, "scan": scan} {
				one, other := lockIn(records[first].Wait), lockIn(records[second].Wait)
				want := lockOf{one.lock, uint32(owner), uint32(owner), records[owner].Linux.StartBoottime, k == testtask.MutexWait, k == testtask.InodeWait, true}
				if one.lock == 0 || one != want || other != want {
					t.Errorf("%v by %s: %+v and %+v, want %+v", k, how, one, other, want)
				}
				if w := records[first].Wait; how == "scan" && w != nil && (w.Flags&kcdata.WaitScan == 0 || w.Flags&kcdata.WaitField != 0) {
					t.Errorf("%v without fields: flags %#x", k, w.Flags)
				}
			}
			a, b := fields[first].Wait, scan[first].Wait
			if a == nil || b == nil || a.Lock != b.Lock {
				t.Errorf("%v: %+v by fields, %+v by the scan", k, a, b)
				continue
			}
			field, kind := sources&kcdata.WaitHasBlocker != 0, uint32(kcdata.LockRWSemWrite)
			if k == testtask.MutexWait {
				field, kind = field || sources&kcdata.WaitHasBlockedOn != 0, kcdata.LockMutex
			}
			if by := a.Flags&kcdata.WaitField != 0; by != field || field && a.Kind != kind {
				t.Errorf("%v: sources %#x, and %+v", k, sources, a)
			}
		}
	})
}

// lockRecords are the threads of a fixture as one capture has them, and what it had to
// go by.
func lockRecords(t *testing.T, engineName string, specs bpf.Specs, f *testtask.Fixture) (all map[int]*kcdata.Thread, sources uint32) {
	t.Helper()
	s := openTest(t, Options{Engine: engineName, ArrivalBudget: time.Second}, engine.Hooks{Specs: specs})
	defer s.Close()
	_, snap, _ := captureWhole(t, s, Request{Pids: pidsOf(f)})
	all = map[int]*kcdata.Thread{}
	for id, th := range threadsByID(snap) {
		all[int(id)] = th
	}
	for i := range f.Children {
		if c := &f.Children[i]; all[c.Pid] == nil {
			t.Fatalf("%v is not in the file", c)
		}
	}
	return all, snap.WaitTaken.Sources
}
