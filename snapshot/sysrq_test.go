package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"stackshot/internal/arm"
	"stackshot/internal/bpf"
	"stackshot/internal/extract"
	"stackshot/internal/resident"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// bySysrq is the snapshot of a SysRq. The test is skipped where the kernel has no hook that
// records.
func bySysrq(t *testing.T) *kcdata.Snapshot {
	t.Helper()
	var a *arm.Armed
	err := resident.ErrArmed
	for until := time.Now().Add(time.Minute); errors.Is(err, resident.ErrArmed) && time.Now().Before(until); time.Sleep(50 * time.Millisecond) { // other tests arm, too
		a, err = arm.Open(arm.Options{Key: arm.DefaultKey, Sysrq: true, Pause: arm.MaxPause, UserStacks: bpf.UserAuto, Wait: true, Version: Version()})
	}
	if errors.Is(err, bpf.ErrUnsupported) || err == nil && !a.Walks() {
		testneed.Hooks(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := os.WriteFile("/proc/sysrq-trigger", []byte{arm.DefaultKey}, 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e, err := a.Next(ctx)
	if err != nil || e.Image == nil {
		t.Fatalf("%+v, %v", e, err)
	}
	defer e.Image.Free()
	var file bytes.Buffer
	res, err := extract.Collate(&file, extract.FromMemory(e.Image.Region), extract.Options{Version: Version()})
	if err != nil || len(res.Missing) > 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	s, err := kcdata.ParseSnapshot(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What a SysRq's file does not share with an ordinary capture's. All other fields are equal, of threads
// that stood still.
var sysrqTable = map[string]row{
	"Task.Threads":  {how: threadIDs, why: "the threads are pairs of their own; here the list of their ids"},
	"Task.Cgroup":   exempt("of /proc, which nobody asks of a dead machine"),
	"Task.ExePath":  exempt("as Task.Cgroup: the executable's name is that of its mapping"),
	"Task.Mappings": exempt("of a SysRq all that the kernel maps, with names; of a capture the executable ones, of /proc, with build-ids"),
	"Task.Cmdline":  {moves: true, how: windowCmdline, why: "a SysRq reads it out of the memory of the first thread, which has none if it has ended"},
	"Task.MapWalk":  exempt("a capture has none where /proc answers"),

	"Thread.Files":         {moves: true, how: windowFiles, why: "without what is looked at after the release"},
	"Thread.User":          exempt("nobody unwinds before symbolize --unwind"),
	"Thread.UserWalk":      nested,
	"Thread.UserHow":       exempt("as Thread.User"),
	"LinuxUserWalk.Frames": exempt("as Thread.User"),
	"LinuxUserWalk.Flags":  {moves: true, how: bits(walkFlags), why: "those of the walk, without what unwinding finds out"},
}

const walkFlags = kcdata.UserWalked | kcdata.UserExact | kcdata.UserPagedOut | kcdata.UserRefused | kcdata.UserOutside |
	kcdata.UserCompat | kcdata.UserNoMemory | kcdata.UserAltStack | kcdata.UserNoPage

func windowCmdline(p *pair, a, b reflect.Value) string {
	if p.a.Memory == nil && a.IsNil() {
		return ""
	}
	return equal(p, a, b)
}

// windowFiles compares what the window, or the walk, told of files.
func windowFiles(_ *pair, p, q reflect.Value) string {
	const later = kcdata.FileStill | kcdata.FileMoved | kcdata.FileCatches
	strip := func(v reflect.Value) []kcdata.LinuxFile {
		list := slices.Clone(v.Interface().([]kcdata.LinuxFile))
		for i := range list {
			list[i].Flags &^= later
		}
		return list
	}
	if a, b := strip(p), strip(q); !slices.Equal(a, b) {
		return fmt.Sprintf("sysrq %+v, trap %+v", a, b)
	}
	return ""
}

// sysrqRow is the rule for a field. Fields that the table exempts, since /proc lacks them, are
// compared here.
func sysrqRow(key string) row {
	if r, ok := sysrqTable[key]; ok {
		return r
	}
	if table[key].why == nested.why {
		return nested
	}
	return row{moves: true, how: equal, bit: table[key].bit}
}

// On a standing fixture a SysRq records what the trap records, but for stated fields.
func TestSysrqEqualsTrapOnTheFixture(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireTrap(t)
	// Not InodeWait: on some kernels its threads wait for the file's position, not for the inode.
	f := testtask.Start(t, slices.DeleteFunc(testtask.All(), func(k testtask.Kind) bool { return k == testtask.InodeWait })...)
	before := map[int]string{}
	for i := range f.Children {
		for _, tid := range f.Children[i].Tids {
			before[tid] = trace(f.Children[i].Pid, tid)
		}
	}
	sysrq := bySysrq(t)
	_, trap, _ := takeWhole(t, Options{Engine: EngineTrap, Latency: LatencyOff, KeepStacks: true}, Request{})
	k := &comparison{compared: map[string]int{}, row: sysrqRow}
	a, b, x, y := tasksByID(sysrq), tasksByID(trap), threadsByID(sysrq), threadsByID(trap)
	for i := range f.Children {
		c := &f.Children[i]
		id := uint64(c.Pid)
		if a[id] == nil || b[id] == nil {
			t.Errorf("%v: in the file of sysrq %v, of trap %v", c, a[id] != nil, b[id] != nil)
			continue
		}
		stood := map[int]bool{}
		all := true
		for _, tid := range c.Tids {
			stood[tid] = before[tid] != "" && before[tid] == trace(c.Pid, tid)
			all = all && stood[tid]
		}
		k.Add(t, pair{pull: sysrq, proc: trap, a: a[id], b: b[id], still: all}, c.String())
		for _, tid := range c.Tids {
			p, q := x[uint64(tid)], y[uint64(tid)]
			if p == nil || q == nil {
				t.Errorf("%v thread %d: in the file of sysrq %v, of trap %v", c, tid, p != nil, q != nil)
				continue
			}
			k.Add(t, pair{pull: sysrq, proc: trap, a: a[id], b: b[id], x: p, y: q, still: stood[tid]}, c.String())
		}
	}
	if k.stood < 20 {
		t.Errorf("%d threads stood still", k.stood)
	}
	t.Logf("%d threads, %d fields", k.stood, len(k.compared))
	for key := range sysrqTable {
		if sysrqTable[key].how != nil && k.compared[key] == 0 {
			t.Errorf("row %s never compared anything", key)
		}
	}
	seesEveryDifference(t, k)
}
