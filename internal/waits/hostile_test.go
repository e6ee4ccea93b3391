package waits

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"stackshot/internal/golden"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// sound fails unless w keeps the promises that its readers rely on.
func sound(t *testing.T, s *kcdata.Snapshot, w *Waits) {
	t.Helper()
	here := map[*kcdata.Thread]*kcdata.Task{}
	for _, task := range s.Tasks {
		for _, th := range task.Threads {
			here[th] = task
		}
	}
	if len(w.Of) != len(w.All) {
		t.Fatalf("%d threads wait, %d waits", len(w.Of), len(w.All))
	}
	for _, x := range w.All {
		if w.Of[x.Thread] != x || here[x.Thread] != x.Task {
			t.Fatalf("a wait of a thread that the file does not have: %+v", x)
		}
		if _, ok := kinds[x.Kind]; !ok || x.Evidence == "" || x.Confidence == "" || x.When == "" {
			t.Fatalf("a wait without a kind: %+v", x)
		}
		if len(x.Owners) > maxOwners {
			t.Fatalf("%d owners", len(x.Owners))
		}
		for _, o := range x.Owners {
			if o.Relation == "" || o.Thread != nil && here[o.Thread] != o.Task {
				t.Fatalf("an owner that the file does not have: %+v", o)
			}
		}
		golden.Showable(t, []byte(strings.Join(x.Notes, "\n")))
	}
	golden.Showable(t, []byte(strings.Join(w.Limits, "\n")))
}

// FuzzWaits: whatever the file, no panic, and the promises hold.
func FuzzWaits(f *testing.F) {
	f.Add(seedFile())
	f.Fuzz(func(t *testing.T, file []byte) {
		s, _ := kcdata.ParseSnapshot(file)
		if s == nil {
			return
		}
		sound(t, s, Of(s))
	})
}

// seedFile has a thread in each record that Of reads.
func seedFile() []byte {
	w := kcdata.NewWriter(make([]byte, 1<<15))
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	must(w.Begin(kcdata.MagicStackshot))
	must(w.String(kcdata.TypeLinuxArch, "x86_64"))
	must(w.Struct(kcdata.TypeLinuxMachine, kcdata.LinuxMachine{PidNSIsFirst: 1}))
	must(w.StructArray(kcdata.TypeLinuxCPU, []kcdata.LinuxCPU{{Flags: kcdata.CPURanKnown, RanTid: 7, RqClock: 9, RqClockAt: 9}}))
	must(w.StructArray(kcdata.TypeLinuxSymbol, []kcdata.LinuxSymbol{{Addr: 16, Name: 1}, {Addr: 32, Name: 9}, {Addr: 64, Name: 23}}))
	must(w.Bytes(kcdata.TypeLinuxStrings, []byte("\x00do_wait\x00futex_do_wait\x00pipe_read\x00")))
	for i, r := range []kcdata.LinuxWait{
		{Flags: kcdata.WaitField | kcdata.WaitOwned, Kind: kcdata.LockMutex, Lock: 1, OwnerTid: 8, OwnerStart: 8},
		{Flags: kcdata.WaitVfork | kcdata.WaitTraced, PeerTid: 7, PeerTgid: 7, PeerStart: 7}, {Flags: kcdata.WaitFrozen},
	} {
		tid := uint32(7 + i)
		must(w.BeginContainer(kcdata.TypeTask, uint64(tid)))
		must(w.Struct(kcdata.TypeLinuxTask, kcdata.LinuxTask{Present: kcdata.TaskHasIDs, Tgid: tid, Ppid: 7}))
		must(w.BeginContainer(kcdata.TypeThread, uint64(tid)))
		must(w.Struct(kcdata.TypeLinuxThread, kcdata.LinuxThread{
			Present: kcdata.ThreadHasOnCPU | kcdata.ThreadHasStart, State: asleep, Tid: tid, Tgid: tid, StartBoottime: uint64(tid),
		}))
		must(w.Uint64s(kcdata.TypeKernStackLR64, []uint64{uint64(16 << i), 17}))
		must(w.Struct(kcdata.TypeLinuxSyscall, kcdata.LinuxSyscall{Nr: 61, Args: [6]uint64{^uint64(0)}}))
		must(w.Struct(kcdata.TypeLinuxWait, r))
		if i < 2 { // the third waits at its files
			must(w.StructArray(kcdata.TypeLinuxFutex, []kcdata.LinuxFutex{{Addr: 1, Flags: kcdata.FutexOwned, Object: 1, OwnerTid: 8, OwnerStart: 8}}))
		}
		must(w.StructArray(kcdata.TypeLinuxFile, []kcdata.LinuxFile{
			{Flags: still | kcdata.FileToRead, Kind: kcdata.FilePipe, Object: 5, Writers: 1}, {Flags: still, Kind: kcdata.FileSocket, Fd: 3, Object: 5, Peer: 6}, {Flags: still, Op: kcdata.FileOpFlock, Kind: kcdata.FileRegular, Object: 5},
		}))
		must(w.StructArray(kcdata.TypeLinuxSocket, []kcdata.LinuxSocket{{Fd: 3, Family: afInet, Kind: sockStream, LocalPort: 1, PeerPort: 2}}))
		must(w.EndContainer(uint64(tid)))
		must(w.EndContainer(uint64(tid)))
	}
	must(w.Struct(kcdata.TypeLinuxFilesTaken, kcdata.LinuxFilesTaken{Sources: 1<<10 - 1}))
	must(w.StructArray(kcdata.TypeLinuxEnd, []kcdata.LinuxEnd{
		{Flags: kcdata.EndSame | kcdata.EndWrites, Of: 5, Tgid: 8, Start: 8}, {Flags: kcdata.EndPair | kcdata.EndListens, Of: 5, Object: 6, Tgid: 9, Start: 9, Backlog: 1}, {Flags: kcdata.EndLocks, Of: 5, LockKind: 1, Tgid: 7, Start: 7},
	}))
	must(w.StructArray(kcdata.TypeLinuxFileLock, []kcdata.LinuxFileLock{{Kind: 1, Tgid: 9, Began: 9}}))
	must(w.StructArray(kcdata.TypeLinuxFUSE, []kcdata.LinuxFUSE{{Tid: 8}}))
	must(w.StructArray(kcdata.TypeLinuxMount, []kcdata.LinuxMount{{ID: 1}}))
	must(w.End())
	return w.Written()
}

// Random records point anywhere, and numbers are there twice.
func TestHostileRecords(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	frames := [][]string{inPipe, inFutex, inWait, {"get_signal"}, {"kernel_clone"}, {"\x1b[2J", "\u202e"}, nil}
	for range 300 {
		w := newWorld()
		for range 1 + r.IntN(30) {
			tid := uint32(r.IntN(8))
			th := w.task(tid, uint32(r.IntN(8)), 1<<r.IntN(17), frames[r.IntN(len(frames))]...)
			th.Linux.OnCPU = uint32(r.IntN(8) / 7)
			n := func() uint32 { return uint32(r.IntN(8)) }
			if r.IntN(2) == 0 {
				th.Wait = &kcdata.LinuxWait{
					Flags: r.Uint32(), Kind: n(), Lock: uint64(n()), OwnerTid: n(), OwnerStart: start(n()),
					PeerTid: n(), PeerTgid: n(), PeerStart: start(n()), Scan: n(),
				}
			}
			for range r.IntN(3) {
				th.Futexes = append(th.Futexes, kcdata.LinuxFutex{Flags: r.Uint32(), Object: n(), OwnerTid: n(), OwnerStart: start(n())})
			}
			th.Syscall = &kcdata.LinuxSyscall{Nr: []int64{61, 247, -1}[r.IntN(3)], Args: [6]uint64{r.Uint64() >> r.IntN(64), uint64(n()), r.Uint64()}}
			th.NS = make([]kcdata.LinuxThreadNS, r.IntN(2))
			if r.IntN(9) == 0 {
				w.last().Threads = nil
			}
		}
		w.of()
		sound(t, w.s, Of(w.s))
	}
}

// A process with 50,000 threads that wait for 50,000 children, all of which it traces, takes
// time in proportion.
func TestManyThreads(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	w := newWorld()
	const n = 50_000
	parent := w.task(10, 1, asleep, inWait...)
	for i := uint32(1); i < n; i++ {
		th := w.thread(w.s.Tasks[0], 1_000_000+i, asleep, inWait...)
		th.Syscall = &kcdata.LinuxSyscall{Nr: 61, Args: [6]uint64{^uint64(0)}}
		w.task(10+i, 10, asleep, inPipe...).Wait = &kcdata.LinuxWait{Flags: kcdata.WaitTraced, PeerTid: 10, PeerTgid: 10, PeerStart: start(10)}
	}
	begin := time.Now()
	all := w.of()
	t.Logf("%d waits in %v", len(all.All), time.Since(begin))
	if time.Since(begin) > 10*time.Second {
		t.Errorf("%v", time.Since(begin))
	}
	got := all.Of[parent]
	if len(got.Owners) != 0 {
		t.Errorf("%d owners", len(got.Owners))
	}
	wantNote(t, "parent", got, "none is named")
}

// BenchmarkOf is for 10,000 threads, 20 frames each.
func BenchmarkOf(b *testing.B) {
	w := newWorld()
	for i := range uint32(10_000) {
		w.task(10+i, 1, asleep, append(append([]string{}, inFutex...), strings.Fields("a b c d e f g h i j k l m n o p q")...)...)
	}
	w.of()
	for b.Loop() {
		Of(w.s)
	}
}
