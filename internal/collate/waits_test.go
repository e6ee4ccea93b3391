package collate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/capture"
	"stackshot/internal/host"
	"stackshot/internal/procfs"
	"stackshot/internal/testread"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// waiter is a thread of a made-up capture.
type waiter struct {
	tid     uint32
	dead    bool
	self    bool
	ns      []kcdata.LinuxThreadNS
	wait    *kcdata.LinuxWait
	futexes []kcdata.LinuxFutex
	raw     func(w *kcdata.Writer) error // further items
}

const startOf = 1_000_000_000 // of thread 0; each later one a second later

// madeUp is a capture of processes: the first thread of each is its leader.
func madeUp(t *testing.T, redact bool, processes ...[]waiter) *capture.Raw {
	t.Helper()
	c := &capture.Raw{Engine: capture.Trap, Isolation: capture.IRQOff, Wants: capture.Wants{Redact: redact}, WaitSources: kcdata.WaitHasWords}
	for i, threads := range processes {
		tgid := threads[0].tid
		w := kcdata.NewWriter(make([]byte, 64<<10))
		task := &kcdata.LinuxTask{Tgid: tgid, StartBoottime: uint64(tgid) * startOf, Present: kcdata.TaskHasTimes}
		err := errors.Join(w.BeginContainer(kcdata.TypeTask, uint64(tgid)), w.Struct(kcdata.TypeTaskSnapshot, &kcdata.TaskSnapshot{Pid: int32(tgid)}),
			w.Struct(kcdata.TypeLinuxTask, task), w.Struct(kcdata.TypeLinuxTaskNS, &kcdata.LinuxTaskNS{}))
		for _, th := range threads {
			lx := &kcdata.LinuxThread{Tid: th.tid, Tgid: tgid, StartBoottime: uint64(th.tid) * startOf}
			if th.dead {
				lx.ExitState = 32
			}
			if th.self {
				lx.Present = kcdata.ThreadIsSelf
			}
			err = errors.Join(err, w.BeginContainer(kcdata.TypeThread, uint64(th.tid)),
				w.Struct(kcdata.TypeThreadSnapshot, &kcdata.ThreadSnapshot{ThreadID: uint64(th.tid)}), w.Struct(kcdata.TypeLinuxThread, lx))
			if th.ns != nil {
				err = errors.Join(err, w.StructArray(kcdata.TypeLinuxThreadNS, th.ns))
			}
			if th.wait != nil {
				err = errors.Join(err, w.Struct(kcdata.TypeLinuxWait, th.wait))
			}
			if th.futexes != nil {
				err = errors.Join(err, w.StructArray(kcdata.TypeLinuxFutex, th.futexes))
			}
			if th.raw != nil {
				err = errors.Join(err, th.raw(w))
			}
			err = errors.Join(err, w.EndContainer(uint64(th.tid)))
		}
		if err = errors.Join(err, w.EndContainer(uint64(tgid))); err != nil {
			t.Fatal(err)
		}
		c.Add(workqueue.Item{Index: uint32(i), Tgid: int32(tgid)}, uint32(len(threads)), [][]byte{w.Written()}, capture.Cost{})
	}
	return c
}

// fakeProc is a /proc of processes that started as madeUp says, with these mappings.
func fakeProc(t *testing.T, maps map[uint32]string) procfs.FS {
	t.Helper()
	root := t.TempDir()
	for tgid, text := range maps {
		dir := filepath.Join(root, fmt.Sprint(tgid))
		stat := fmt.Sprintf("%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0%s\n", tgid, uint64(tgid)*startOf/1e7, strings.Repeat(" 0", 28))
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o644),
			os.WriteFile(filepath.Join(dir, "maps"), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return procfs.FS{Root: root}
}

// collated is the file of a made-up capture, decoded, and its bytes.
func collated(t *testing.T, proc procfs.FS, c *capture.Raw) (*kcdata.Snapshot, []byte) {
	t.Helper()
	var file bytes.Buffer
	k := &Collator{Host: &host.Host{}, Proc: proc, KeepUserSide: true}
	if _, err := k.Write(&file, c); err != nil {
		t.Fatal(err)
	}
	s, err := kcdata.ParseSnapshot(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return s, file.Bytes()
}

// words lays 32-bit words around a futex word, the first from bytes behind it.
func words(f kcdata.LinuxFutex, from int, v ...uint32) kcdata.LinuxFutex {
	f.Have = 0x3ff
	for i, v := range v {
		binary.LittleEndian.PutUint32(f.Around[16+from+4*i:], v)
	}
	return f
}

const private = kcdata.FutexPrivate

func glibcMutex(addr uint64, owner uint32) kcdata.LinuxFutex {
	return words(kcdata.LinuxFutex{Addr: addr, Place: addr << 20, Flags: private, Expected: 2}, 0, 2, 0, owner, 1, 0, 0)
}

func sharedMutex(addr, place uint64, owner uint32) kcdata.LinuxFutex {
	return words(kcdata.LinuxFutex{Addr: addr, Place: place, Expected: 2}, 0, 2, 0, owner, 1, 128, 0)
}

func threadOf(t *testing.T, s *kcdata.Snapshot, tid uint64) *kcdata.Thread {
	t.Helper()
	for _, task := range s.Tasks {
		for _, th := range task.Threads {
			if th.ID == tid {
				return th
			}
		}
	}
	t.Fatalf("no thread %d", tid)
	return nil
}

const mapShared = "7f0000000000-7f0000002000 rw-s 00001000 00:01 77 /dev/zero (deleted)\n"

// Two mutexes crosswise, one of processes that share memory, one of a PI futex whose kernel owner is
// another: what the file says of each, its sums, and Apple's record.
func TestWaitsCollated(t *testing.T) {
	kernel := &kcdata.LinuxWait{Flags: kcdata.WaitField | kcdata.WaitOwned, Kind: kcdata.LockMutex, Lock: 0xffff888012345678, OwnerTid: 11, OwnerTgid: 10, OwnerStart: 11 * startOf}
	semaphore := &kcdata.LinuxWait{Flags: kcdata.WaitScan | kcdata.WaitScanned | kcdata.WaitLastHolder, Kind: kcdata.LockSemaphore, Lock: 0xffff888000000010,
		OwnerTid: 11, OwnerTgid: 10, OwnerStart: 11 * startOf, Scan: kcdata.ScanFound}
	stale := &kcdata.LinuxWait{Flags: kcdata.WaitField | kcdata.WaitOwned, Kind: kcdata.LockRWSemWrite, Lock: 0xffff888000000020, OwnerTid: 11, OwnerTgid: 10, OwnerStart: 5}
	pi := &kcdata.LinuxWait{Flags: kcdata.WaitPI | kcdata.WaitOwned, Kind: kcdata.LockRTMutex, Lock: 0xffff888000000030, OwnerTid: 20, OwnerTgid: 20, OwnerStart: 20 * startOf}
	piWord := words(kcdata.LinuxFutex{Addr: 0x7000, Flags: private | kcdata.FutexPI, Op: 6}, 0, 1<<31|11)
	capt := func(redact bool) *capture.Raw {
		return madeUp(t, redact,
			[]waiter{
				{tid: 10, futexes: []kcdata.LinuxFutex{glibcMutex(0x5000, 11)}},
				{tid: 11, futexes: []kcdata.LinuxFutex{glibcMutex(0x6000, 10)}},
				{tid: 12, futexes: []kcdata.LinuxFutex{glibcMutex(0x5000, 11)}},
				{tid: 13, futexes: []kcdata.LinuxFutex{piWord}, wait: pi},
			},
			[]waiter{
				{tid: 20, futexes: []kcdata.LinuxFutex{sharedMutex(0x7f0000000010, 0x99, 30)}},
				{tid: 21, wait: kernel}, {tid: 22, wait: semaphore}, {tid: 23, wait: stale},
				{tid: 24, wait: &kcdata.LinuxWait{Flags: kcdata.WaitScanned, Scan: kcdata.ScanNoRing}},
				{tid: 25, wait: &kcdata.LinuxWait{Flags: kcdata.WaitScanned, Scan: kcdata.ScanNoPath}},
			},
			[]waiter{{tid: 30}, {tid: 31, futexes: []kcdata.LinuxFutex{glibcMutex(0x5000, 11)}}, {tid: 32, wait: kernel, futexes: []kcdata.LinuxFutex{{Flags: kcdata.FutexAbsent | kcdata.FutexRefused}}}},
		)
	}
	proc := fakeProc(t, map[uint32]string{10: "", 20: mapShared, 30: "500000000000-500000003000 rw-s 00000000 00:01 77 /dev/zero (deleted)\n"})
	for _, redact := range []bool{false, true} {
		s, file := collated(t, proc, capt(redact))
		for tid, want := range map[uint64][3]uint32{
			10: {kcdata.FutexGlibcMutex, 11, kcdata.FutexOwned}, 11: {kcdata.FutexGlibcMutex, 10, kcdata.FutexOwned},
			13: {kcdata.FutexPIWord, 0, kcdata.FutexDiffers}, 20: {kcdata.FutexGlibcMutex, 30, kcdata.FutexOwned},
			31: {kcdata.FutexGlibcMutex, 11, kcdata.FutexOwnerGone}, // 11 is of another process
			32: {0, 0, 0},
		} {
			f := threadOf(t, s, tid).Futexes[0]
			if got := [3]uint32{f.Object, f.OwnerTid, f.Flags &^ (private | kcdata.FutexPI | kcdata.FutexAbsent | kcdata.FutexRefused)}; got != want || f.OwnerStart != uint64(want[1])*startOf {
				t.Errorf("redacted %v, thread %d: %v, want %v: %+v", redact, tid, got, want, f)
			}
		}
		want := kcdata.LinuxWaitTaken{Sources: kcdata.WaitHasWords, Threads: 7, Fields: 4, Scanned: 3, Scans: 1, NoPath: 1, Unsound: 1, Futexes: 7, Absent: 1, Refused: 1, Owned: 4}
		if s.WaitTaken == nil || *s.WaitTaken != want {
			t.Errorf("sums %+v, want %+v", s.WaitTaken, want)
		}
		type info = kcdata.ThreadWaitinfo
		lock := func(open, shut uint64) uint64 { // what it is shown as
			if redact {
				return shut
			}
			return open
		}
		for i, want := range [][]info{
			{{Waiter: 10, Owner: 11, Context: lock(0x5000, 1), WaitType: 0xb}, {Waiter: 11, Owner: 10, Context: lock(0x6000, 2), WaitType: 0xb},
				{Waiter: 12, Owner: 11, Context: lock(0x5000, 1), WaitType: 0xb}, {Waiter: 13, Owner: 20, Context: lock(0x7000, 3), WaitType: 0xb}},
			{{Waiter: 20, Owner: 30, Context: lock(0x7f0000000010, 4), WaitType: 0xb}, {Waiter: 21, Owner: 11, Context: lock(kernel.Lock, 2), WaitType: 1},
				{Waiter: 22, Owner: 10, Context: lock(semaphore.Lock, 3), WaitType: 6}, {Waiter: 23, Context: lock(stale.Lock, 4), WaitType: 8}},
			{{Waiter: 31, Context: lock(0x5000, 5), WaitType: 0xb}, {Waiter: 32, Owner: 11, Context: lock(kernel.Lock, 2), WaitType: 1}},
		} {
			if got := s.Tasks[i].WaitInfo; !slices.Equal(got, want) {
				t.Errorf("redacted %v, task %d:\n%+v, want\n%+v", redact, i, got, want)
			}
		}
		checkApple(t, file)
	}
}

// checkApple has Apple's decoder read the file: it finds nothing wrong, and the same records.
func checkApple(t *testing.T, file []byte) {
	t.Helper()
	root, faults, err := testread.Decode(file)
	if err != nil || len(faults) > 0 {
		t.Fatalf("%v %q", err, faults)
	}
	infos := root.In["task_snapshots"][10].Items["thread_waitinfo"].([]any)
	if len(infos) != 4 || fmt.Sprint(infos[0].(map[string]any)["owner"], infos[0].(map[string]any)["wait_type"]) != "11 11" {
		t.Errorf("%v", infos)
	}
}

// Nothing of user memory and no address is in a redacted file, and the same lock has the same number
// throughout.
func TestWaitsRedacted(t *testing.T) {
	const secret, kernelLock = 0x7f31deadbe10, 0xffff8881cafe0010
	f := glibcMutex(secret, 11)
	s := sharedMutex(secret, 0x1234567890, 10)
	binary.LittleEndian.PutUint64(f.Around[:], secret+8)
	other := s
	other.Addr = secret + 0x100000 // where another process maps it
	wait := &kcdata.LinuxWait{Flags: kcdata.WaitField, Kind: kcdata.LockRWSemRead, Lock: kernelLock}
	second := &kcdata.LinuxWait{Flags: kcdata.WaitField, Kind: kcdata.LockRWSem, Lock: kernelLock + 64}
	c := func(redact bool) *capture.Raw {
		return madeUp(t, redact,
			[]waiter{{tid: 10, futexes: []kcdata.LinuxFutex{f}, wait: wait}, {tid: 11, futexes: []kcdata.LinuxFutex{s}, wait: second}},
			[]waiter{{tid: 20, futexes: []kcdata.LinuxFutex{other}, wait: wait}, {tid: 21, futexes: []kcdata.LinuxFutex{f}}})
	}
	proc := fakeProc(t, nil)
	holds := func(file []byte) (found []string) {
		for off := 0; off+8 <= len(file); off++ {
			v := binary.LittleEndian.Uint64(file[off:])
			for _, base := range []uint64{secret, kernelLock, 0x1234567890} {
				if v >= base && v < base+0x200000 {
					found = append(found, fmt.Sprintf("%#x at %d", v, off))
				}
			}
		}
		return found
	}
	if _, open := collated(t, proc, c(false)); len(holds(open)) < 10 {
		t.Fatalf("the file without --redact holds only %q", holds(open))
	}
	snap, shut := collated(t, proc, c(true))
	if found := holds(shut); len(found) > 0 {
		t.Errorf("%q", found)
	}
	at := func(tid uint64) (kcdata.LinuxFutex, uint64) {
		th := threadOf(t, snap, tid)
		lock := uint64(0)
		if th.Wait != nil {
			lock = th.Wait.Lock
		}
		return th.Futexes[0], lock
	}
	f10, l10 := at(10)
	f11, l11 := at(11)
	f20, l20 := at(20)
	f21, _ := at(21)
	if l10 != 1 || l11 != 2 || l20 != 1 {
		t.Errorf("locks %d %d %d, want 1 2 1", l10, l11, l20)
	}
	if f10.Addr != 1 || f11.Addr != 2 || f20.Addr != 2 || f21.Addr != 3 {
		t.Errorf("words %d %d %d %d, want 1 2 2 3", f10.Addr, f11.Addr, f20.Addr, f21.Addr)
	}
	if f10.Object != kcdata.FutexGlibcMutex || f10.OwnerTid != 11 || f10.Flags&kcdata.FutexOwned == 0 || f10.Have != 0 || f10.Expected != 0 {
		t.Errorf("%+v", f10)
	}
}

// An owner in another process: by its mappings, by a place, or not at all.
func TestSharedOwners(t *testing.T) {
	const addr, place = 0x7f0000000010, 0x4242
	apart := "500000000000-500000003000 rw-s 00000000 00:01 78 /dev/zero (deleted)\n"
	same := "500000000000-500000003000 rw-s 00000000 00:01 77 /dev/zero (deleted)\n"
	for name, c := range map[string]struct {
		maps         map[uint32]string
		place, other uint64 // of the waiter, and of a thread of the owner's process
		private      bool   // the call
		flags, owner uint32
	}{
		"the same file and page":            {map[uint32]string{10: mapShared, 20: same}, 0, 0, false, kcdata.FutexOwned, 21},
		"the same file, other pages":        {map[uint32]string{10: mapShared, 20: strings.Replace(same, "00000000 00", "00002000 00", 1)}, 0, 0, false, kcdata.FutexOwnerGone, 21},
		"another file":                      {map[uint32]string{10: mapShared, 20: apart}, 0, 0, false, kcdata.FutexOwnerGone, 21},
		"a private mapping":                 {map[uint32]string{10: strings.Replace(mapShared, "rw-s", "rw-p", 1), 20: same}, place, place, false, kcdata.FutexOwnerGone, 21},
		"a private call":                    {map[uint32]string{10: mapShared, 20: same}, place, place, true, kcdata.FutexOwnerGone, 21},
		"no mappings of the owner":          {map[uint32]string{10: mapShared}, place, 0, false, kcdata.FutexOwnerUnsure, 0},
		"no mappings":                       {nil, place, place + 4, false, kcdata.FutexOwnerUnsure, 0},
		"no mappings, places not read":      {nil, 0, 0, false, kcdata.FutexOwnerUnsure, 0},
		"no mappings, waits there itself":   {nil, place, place, false, kcdata.FutexOwned, 21},
		"mappings that cannot be read":      {map[uint32]string{10: mapShared, 20: "?"}, 0, 0, false, kcdata.FutexOwnerUnsure, 0},
		"mappings of the waiter are broken": {map[uint32]string{10: "?", 20: same}, 0, 0, false, kcdata.FutexOwnerUnsure, 0},
	} {
		f, g := sharedMutex(addr, c.place, 21), sharedMutex(0x500000000010, c.other, 555)
		if c.private {
			f.Flags |= private
			binary.LittleEndian.PutUint32(f.Around[32:], 0)
		}
		raw := madeUp(t, false, []waiter{{tid: 10, futexes: []kcdata.LinuxFutex{f}}}, []waiter{{tid: 20, futexes: []kcdata.LinuxFutex{g}}, {tid: 21}})
		s, _ := collated(t, fakeProc(t, c.maps), raw)
		got := threadOf(t, s, 10).Futexes[0]
		if got.Flags&^private != c.flags || got.OwnerTid != c.owner {
			t.Errorf("%s: flags %#x, owner %d; want %#x, %d", name, got.Flags, got.OwnerTid, c.flags, c.owner)
		}
	}
}

// The mappings of another process that has the number by now prove nothing.
func TestSharedOwnerOfAnotherTime(t *testing.T) {
	raw := madeUp(t, false, []waiter{{tid: 10, futexes: []kcdata.LinuxFutex{sharedMutex(0x7f0000000010, 0, 21)}}}, []waiter{{tid: 20}, {tid: 21}})
	proc := fakeProc(t, map[uint32]string{10: mapShared, 20: mapShared})
	stat := filepath.Join(proc.Root, "20", "stat")
	b, err := os.ReadFile(stat)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stat, bytes.Replace(b, []byte(" 2000 "), []byte(" 2900 "), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	s, _ := collated(t, proc, raw)
	if f := threadOf(t, s, 10).Futexes[0]; f.Flags != kcdata.FutexOwnerUnsure || f.OwnerTid != 0 {
		t.Errorf("%+v", f)
	}
}

// Records of waits that are short, odd or twice there are left out and counted; the rest of the task
// stays.
func TestDamagedWaits(t *testing.T) {
	odd := []func(w *kcdata.Writer) error{
		func(w *kcdata.Writer) error { return w.Bytes(kcdata.TypeLinuxWait, make([]byte, sizeOfWait-4)) },
		func(w *kcdata.Writer) error { return w.Bytes(kcdata.TypeLinuxWait, nil) },
		func(w *kcdata.Writer) error {
			return w.Array(kcdata.TypeLinuxWait, sizeOfWait, 1, make([]byte, sizeOfWait))
		},
		func(w *kcdata.Writer) error { return w.Array(kcdata.TypeLinuxFutex, 40, 3, make([]byte, 120)) },
		func(w *kcdata.Writer) error { return w.Array(kcdata.TypeLinuxFutex, sizeOfFutex, 0, nil) },
		func(w *kcdata.Writer) error { return w.Bytes(kcdata.TypeLinuxFutex, make([]byte, sizeOfFutex)) },
		func(w *kcdata.Writer) error {
			return errors.Join(w.StructArray(kcdata.TypeLinuxFutex, []kcdata.LinuxFutex{{}}), w.StructArray(kcdata.TypeLinuxFutex, []kcdata.LinuxFutex{{}}))
		},
	}
	for _, redact := range []bool{false, true} {
		var threads []waiter
		for i, raw := range odd {
			threads = append(threads, waiter{tid: uint32(10 + i), raw: raw})
		}
		s, _ := collated(t, fakeProc(t, nil), madeUp(t, redact, threads))
		i := slices.IndexFunc(s.Warnings, func(w kcdata.Warning) bool { return w.Code == "wait_damaged" })
		if i < 0 || !strings.Contains(s.Warnings[i].Text, fmt.Sprint(len(odd))) || len(s.Tasks) != 1 || len(s.Tasks[0].Threads) != len(odd) {
			t.Errorf("%+v, %d tasks", s.Warnings, len(s.Tasks))
		}
		if w := s.WaitTaken; w.Threads != 0 || w.Futexes != 1 {
			t.Errorf("%+v", w)
		}
	}
}

// Whatever stands in the records: collation ends, the file can be read, and a redacted one holds
// none of it.
func TestHostileWaits(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 13))
	word := func() uint32 {
		return []uint32{0, 1, 2, 3, 10, 11, 20, 1 << 31, 1<<31 | 11, rng.Uint32()}[rng.IntN(10)]
	}
	for i := range 300 {
		var threads []waiter
		for tid := range uint32(3) {
			w := waiter{tid: 10 + tid, dead: rng.IntN(4) == 0}
			for range rng.IntN(4) {
				f := kcdata.LinuxFutex{Addr: rng.Uint64() | 1<<60, Place: rng.Uint64N(3) << 60, Flags: rng.Uint32() >> rng.IntN(32), Op: word() % 16, Expected: word(), OwnerTid: 77, Object: 99}
				w.futexes = append(w.futexes, words(f, -16, word(), word(), word(), word(), word(), word(), word(), word(), word(), word()))
			}
			w.wait = &kcdata.LinuxWait{Flags: rng.Uint32(), Kind: word() % 9, Lock: rng.Uint64() | 1<<60, OwnerTid: word(), OwnerStart: startOf * 11, Scan: word()}
			w.ns = []kcdata.LinuxThreadNS{{Inode: word(), Tid: word()}}
			threads = append(threads, w)
		}
		s, _ := collated(t, procfs.FS{Root: t.TempDir()}, madeUp(t, i%2 == 0, threads))
		for _, th := range s.Tasks[0].Threads {
			for _, f := range th.Futexes {
				if f.OwnerTid == 77 || f.Object == 99 || i%2 == 0 && (f.Addr > 30 || f.Place != 0 || f.Around != [40]byte{}) {
					t.Fatalf("%+v", f)
				}
			}
			if i%2 == 0 && th.Wait.Lock > 3 {
				t.Fatalf("%+v", th.Wait)
			}
		}
		for _, info := range s.Tasks[0].WaitInfo {
			if info.Owner > 12 || i%2 == 0 && info.Context > 30 {
				t.Fatalf("%+v", info)
			}
		}
	}
}

// A capture without waits has no sums, and one whose tasks are of no table still ends.
func TestNoWaits(t *testing.T) {
	raw := madeUp(t, false, []waiter{{tid: 10}})
	raw.WaitSources = 0
	if s, _ := collated(t, fakeProc(t, nil), raw); s.WaitTaken != nil || s.Tasks[0].WaitInfo != nil {
		t.Errorf("%+v", s.WaitTaken)
	}
	for _, odd := range [][]byte{{12, 0, 0, 0, 10, 0, 0, 0}, {11, 0, 0, 0, 20, 0, 0, 0}} { // tid and tgid in LinuxThread
		other := madeUp(t, false, []waiter{{tid: 10}, {tid: 11, futexes: []kcdata.LinuxFutex{glibcMutex(0x10, 10)}}})
		other.Recorded[0].Pieces[0] = bytes.Replace(other.Recorded[0].Pieces[0], []byte{11, 0, 0, 0, 10, 0, 0, 0}, odd, 1)
		s, _ := collated(t, fakeProc(t, nil), other)
		if f := threadOf(t, s, 11).Futexes[0]; f.Object != 0 || f.OwnerTid != 0 {
			t.Errorf("a thread of two numbers: %+v", f)
		}
	}
}
