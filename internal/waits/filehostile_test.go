package waits

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"stackshot/kcdata"
)

// fileStacks lead to every kind of wait at a file.
var fileStacks = [][]string{inPipe, inSocket, inTCP, inPoll, inEpoll, inFlock, inTTY, inFUSE, {"handle_userfault"}, {"eventfd_read"}, {"submit_bio_wait"}, {"nfs_wait"}, {"fifo_open"}, nil}

// anything is a world of random records in which numbers repeat.
func anything(r *rand.Rand) *world {
	w := newWorld()
	n := func() uint32 { return uint32(r.IntN(9)) }
	big := func() uint64 {
		if r.IntN(30) == 0 {
			return r.Uint64()
		}
		return uint64(n() / 2)
	}
	w.s.Machine.Redacted, w.s.Machine.BoottimeNs = n()/8, map[bool]uint64{true: start(6)}[r.IntN(4) == 0]
	for range 1 + r.IntN(12) {
		th := w.task(1+n(), n(), []uint32{asleep, asleep, asleep, blocked}[r.IntN(4)], fileStacks[r.IntN(1+r.IntN(len(fileStacks)))]...)
		if r.IntN(3) == 0 {
			w.thread(w.last(), 100+n(), asleep, fileStacks[r.IntN(len(fileStacks))]...)
		}
		w.last().NS = &kcdata.LinuxTaskNS{Mnt: n()}
		for i := range r.IntN(4) {
			th.Files = append(th.Files, kcdata.LinuxFile{
				Flags: r.Uint32()&r.Uint32() | still&^(r.Uint32()<<16&r.Uint32()), Op: n() * 2, Kind: n() * 2, Fd: int32(i), Object: big(), Peer: big(), File: big(), Inode: uint64(n()), Dev: uint64(n()),
				Magic: []uint64{fuseMagic, 0}[r.IntN(2)], OFlags: n(), Readers: n(), Writers: n(), Bytes: big(), LockStart: r.Uint64() >> r.IntN(64), LockLen: r.Uint64() >> r.IntN(64), LockHow: n(),
			})
			if th.Files[i].Kind = []uint32{th.Files[i].Kind, kcdata.FileSocket, kcdata.FilePipe}[r.IntN(3)]; th.Files[i].Kind == kcdata.FileSocket && r.IntN(9) > 0 {
				th.Sockets = append(th.Sockets, kcdata.LinuxSocket{Flags: n(), Fd: int32(i), Family: []uint16{1, 2, 10, 16, 40, 99}[r.IntN(6)], Kind: uint16(1 + n()%5), State: uint16(n()), LocalPort: uint16(n()), PeerPort: uint16(n()), Remote: [16]byte{byte(n()), 1}})
			}
		}
		if r.IntN(2) == 0 {
			th.Wait = &kcdata.LinuxWait{Flags: r.Uint32() & kcdata.WaitFewFiles, Files: r.Uint32() >> r.IntN(32)}
		}
		th.Syscall = &kcdata.LinuxSyscall{Nr: []int64{2, 257, 85, 437, 0}[r.IntN(5)], Args: [6]uint64{big(), big(), big()}}
	}
	for range r.IntN(60) {
		tgid := n()
		began := start([]uint32{tgid, tgid, tgid, n()}[r.IntN(4)])
		w.s.Ends = append(w.s.Ends, kcdata.LinuxEnd{
			Flags: r.Uint32()&r.Uint32() | []uint32{0, kcdata.EndSame | kcdata.EndWrites, kcdata.EndPeer}[r.IntN(3)], Kind: n() * 3, Object: big(), Peer: big(), Of: big(), File: big(), Dev: uint64(n()), Start: began, Tgid: tgid, Refs: n(), Backlog: n(), BytesIn: big(),
			Family: uint16(n()), Port: uint16(n()), NetNS: n() / 4, LockKind: r.Uint32() >> r.IntN(32),
		})
		w.s.FileLocks = append(w.s.FileLocks, kcdata.LinuxFileLock{Kind: n(), Flags: n(), Tgid: tgid, Dev: uint64(n()), Inode: uint64(n()), Start: big(), End: r.Uint64() >> r.IntN(64), Began: began})
		w.s.FUSE = append(w.s.FUSE, kcdata.LinuxFUSE{Dev: uint64(n()), Conn: big(), Flags: n(), Tid: n(), Unique: big()})
		w.s.Mounts = append(w.s.Mounts, mount(uint64(n()), n(), n()/3, "/\x1b[2J", "nas\u202e:/", "nfs", "/"))
	}
	return w
}

// atFiles fails unless what a wait at a file says is of one piece.
func atFiles(t *testing.T, all *Waits) {
	t.Helper()
	for _, w := range all.All {
		x := w.File
		if x == nil {
			continue
		}
		if x.File == nil || x.Of < 0 || x.Others < 0 {
			t.Fatalf("%+v", x)
		}
		if len(w.Owners) > 0 && x.Says != "" && x.Says != OwnEnd && x.Says != Elsewhere {
			t.Fatalf("%s, and owners %s", x.Says, whole(w))
		}
		if x.Says == OwnEnd && (len(w.Owners) != 1 || w.Owners[0].Task != w.Task) {
			t.Fatalf("own end of %s", whole(w))
		}
		if len(w.Owners) > maxSide+1 {
			t.Fatalf("%d owners", len(w.Owners))
		}
		seen := map[Owner]bool{}
		for _, o := range w.Owners {
			if !o.Whole || seen[o] || o.Task != nil && o.Task.IsSelf() {
				t.Fatalf("owner %+v of %s", o, whole(w))
			}
			seen[o] = true
		}
	}
}

// Whatever the records say, the promises hold, and the order of what was read after the release
// does not matter.
func TestHostileFiles(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 5))
	named := 0
	for range 3000 {
		w := anything(r)
		all := w.of()
		sound(t, w.s, all)
		atFiles(t, all)
		r.Shuffle(len(w.s.Ends), func(i, j int) { w.s.Ends[i], w.s.Ends[j] = w.s.Ends[j], w.s.Ends[i] })
		r.Shuffle(len(w.s.FileLocks), func(i, j int) { w.s.FileLocks[i], w.s.FileLocks[j] = w.s.FileLocks[j], w.s.FileLocks[i] })
		r.Shuffle(len(w.s.FUSE), func(i, j int) { w.s.FUSE[i], w.s.FUSE[j] = w.s.FUSE[j], w.s.FUSE[i] })
		again := Of(w.s)
		for i, x := range all.All {
			y := again.All[i]
			if whole(x) != whole(y) || x.Resource != y.Resource || x.Confidence != y.Confidence || says(x) != says(y) || !slices.Equal(x.Notes, y.Notes) || !reflect.DeepEqual(x.File, y.File) {
				t.Fatalf("another order, another wait:\n%+v %+v\n%+v %+v", x, x.File, y, y.File)
			}
			named += len(x.Owners)
		}
	}
	if named < 300 {
		t.Errorf("%d owners in all: the test does not test much", named)
	}
}

// A fact that was read after the release counts only if its waiter still waited.
func TestMovedFilesNameNobody(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 14))
	for range 500 {
		w := anything(r)
		for _, task := range w.s.Tasks {
			for _, th := range task.Threads {
				for i := range th.Files {
					th.Files[i].Flags &^= still
				}
			}
		}
		for _, x := range w.of().All {
			if x.File != nil && len(x.Owners) > 0 && x.File.File.Fd >= 0 {
				t.Fatalf("%+v names %s", x.File.File, whole(x))
			}
		}
	}
}

// 16 files of each of 2,000 threads and 60,000 ends of one object are looked at once for each part
// of the ends, not once for each thread; and all who wait for the same owners share them.
func TestManyEnds(t *testing.T) {
	w := newWorld()
	const threads, n = 2000, 60_000
	for i := range uint32(threads) {
		th := w.task(10+i, 1, asleep, inPoll...)
		for range 16 {
			th.Files = append(th.Files, pipeFile(500, kcdata.FilePolled))
		}
	}
	single := w.task(5, 1, asleep, inPipe...)
	other := w.task(6, 1, asleep, inPipe...)
	single.Files, other.Files = files(pipeFile(600, 0)), files(pipeFile(600, 0))
	for i := range uint32(n) {
		w.s.Ends = append(w.s.Ends, end(10+i%threads, 500, kcdata.EndSame|kcdata.EndWrites))
	}
	w.s.Ends = append(w.s.Ends, end(10, 600, kcdata.EndSame|kcdata.EndWrites))
	w.of()
	f := newFinder(w.s)
	x, y := f.wait(w.s.Tasks[threads], single), f.wait(w.s.Tasks[threads+1], other)
	if len(x.Owners) != 1 || len(y.Owners) != 1 || &x.Owners[0] != &y.Owners[0] {
		t.Errorf("%s, %s: not shared", whole(x), whole(y))
	}
	for _, task := range w.s.Tasks {
		if got := f.wait(task, task.Threads[0]); task.ID >= 10 && len(got.Owners) > 0 {
			t.Fatalf("%d of thousands of writers are named", len(got.Owners))
		}
	}
	if f.ends.visits > int(serves+1)*(n+1) {
		t.Errorf("%d ends looked at, of %d", f.ends.visits, n+1)
	}
}

// The file that the fuzzer begins with has an owner at the other end of a file.
func TestSeedHasFiles(t *testing.T) {
	s, err := kcdata.ParseSnapshot(seedFile())
	if err != nil {
		t.Fatal(err)
	}
	all := Of(s).All
	if w := all[len(all)-1]; whole(w) != "other_end 8!" || w.Kind != Pipe {
		t.Errorf("%+v", w)
	}
}

// A few bytes of a file changed: no panic, and the promises hold.
func TestChangedBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	seed := seedFile()
	for range 4000 {
		file := slices.Clone(seed)
		for range 1 + r.IntN(4) {
			file[r.IntN(len(file))] = byte(r.Uint32())
		}
		if s, _ := kcdata.ParseSnapshot(file); s != nil {
			all := Of(s)
			sound(t, s, all)
			atFiles(t, all)
		}
	}
}
