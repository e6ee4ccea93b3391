package ends

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// sleeper is a thread of a made-up capture.
type sleeper struct {
	linux   kcdata.LinuxThread
	call    *kcdata.LinuxSyscall
	files   []kcdata.LinuxFile
	sockets []kcdata.LinuxSocket
}

const startOf = 1_000_000_000 // of process 1; each later one a second later

// raw is a capture of one task for each list of threads, the leader first.
func raw(t testing.TB, mounts uint32, tasks ...[]sleeper) *capture.Raw {
	t.Helper()
	c := &capture.Raw{Engine: capture.Trap, FileSources: kcdata.FilesHasTable}
	for i, threads := range tasks {
		tgid := threads[0].linux.Tid
		w := kcdata.NewWriter(make([]byte, 64<<10))
		err := errors.Join(w.BeginContainer(kcdata.TypeTask, uint64(tgid)), w.Struct(kcdata.TypeLinuxTask, &kcdata.LinuxTask{Tgid: tgid}),
			w.Struct(kcdata.TypeLinuxTaskNS, &kcdata.LinuxTaskNS{Mnt: mounts}))
		for _, th := range threads {
			th.linux.Tgid = tgid
			th.linux.StartBoottime = uint64(th.linux.Tid) * startOf
			err = errors.Join(err, w.BeginContainer(kcdata.TypeThread, uint64(th.linux.Tid)), w.Struct(kcdata.TypeLinuxThread, &th.linux))
			if th.call != nil {
				err = errors.Join(err, w.Struct(kcdata.TypeLinuxSyscall, th.call))
			}
			if th.files != nil {
				err = errors.Join(err, w.StructArray(kcdata.TypeLinuxFile, th.files))
			}
			if th.sockets != nil {
				err = errors.Join(err, w.StructArray(kcdata.TypeLinuxSocket, th.sockets))
			}
			err = errors.Join(err, w.EndContainer(uint64(th.linux.Tid)))
		}
		if err = errors.Join(err, w.EndContainer(uint64(tgid))); err != nil {
			t.Fatal(err)
		}
		c.Add(workqueue.Item{Index: uint32(i), Tgid: int32(tgid)}, uint32(len(threads)), [][]byte{w.Written()}, capture.Cost{})
	}
	return c
}

func asleep(tid uint32, files ...kcdata.LinuxFile) sleeper {
	return sleeper{linux: kcdata.LinuxThread{Tid: tid, State: kcdata.StateInterruptible, Nvcsw: 5, Nivcsw: 2}, files: files}
}

var aPipe = kcdata.LinuxFile{Op: kcdata.FileOpRead, Kind: kcdata.FilePipe, Object: 0xffff888000001000, File: 0xffff888000009000, Inode: 77, Dev: 15}

// Each kind of file is wanted in its way, each object once, and each thread that waits.
func TestWanted(t *testing.T) {
	socket := kcdata.LinuxFile{Kind: kcdata.FileSocket, Fd: 9, Object: 0x2000, Peer: 0x3000, Inode: 88}
	lock := kcdata.LinuxFile{Kind: kcdata.FileRegular, Op: kcdata.FileOpFlock, Object: 0x4000, Inode: 99, Dev: 254 << 32}
	onDisk := kcdata.LinuxFile{Kind: kcdata.FileRegular, Op: kcdata.FileOpRead, Object: 0x5000, Dev: 50}
	epoll := kcdata.LinuxFile{Kind: kcdata.FileEpoll, Object: 0x6000}
	closed := kcdata.LinuxFile{Kind: kcdata.FilePipe, Object: 0x7000, Flags: kcdata.FileClosed}
	kernel := asleep(60, aPipe)
	kernel.linux.Flags = kcdata.PFKthread
	self := asleep(61, aPipe)
	self.linux.Present = kcdata.ThreadIsSelf
	inFault := asleep(62)
	inFault.call = &kcdata.LinuxSyscall{Nr: -1}
	stuck := sleeper{linux: kcdata.LinuxThread{Tid: 63, State: kcdata.StateUninterruptible}}
	idle := asleep(64) // in a call without a descriptor
	idle.call = &kcdata.LinuxSyscall{Nr: 35}
	server := asleep(11, aPipe, socket)
	server.sockets = []kcdata.LinuxSocket{{Fd: 9, Family: 2, Kind: 1, LocalPort: 80, NetNS: 5}}
	w := Wanted(raw(t, 4026531841, []sleeper{asleep(10, aPipe), server}, []sleeper{asleep(20, lock, onDisk, epoll, closed)},
		[]sleeper{kernel}, []sleeper{self}, []sleeper{inFault}, []sleeper{stuck}, []sleeper{idle}))
	want := []bpf.WantedEnd{
		{Kind: kcdata.FilePipe, Object: aPipe.Object, Inode: 77, Dev: 15},
		{Kind: kcdata.FileSocket, Object: 0x2000, Peer: 0x3000, Inode: 88, Family: 2, Sort: 1, NetNS: 5, LocalPort: 80},
		{Kind: kcdata.FileRegular, Object: 0x4000, Inode: 99, Dev: 254 << 32, Lock: true},
		{Kind: kcdata.FileUserfaultfd},
	}
	if !slices.Equal(w.Ends, want) || w.TooMany {
		t.Errorf("%+v", w.Ends)
	}
	var tids []uint32
	for _, th := range w.Threads {
		if tids = append(tids, th.Tid); th.Start != uint64(th.Tid)*startOf || th.Tid < 60 && th.Switches != 7 {
			t.Errorf("%+v", th)
		}
	}
	if !slices.Equal(tids, []uint32{10, 11, 20, 62, 63}) {
		t.Errorf("threads %v", tids)
	}
	if !w.Locks[FileID{254 << 32, 99}] || len(w.Locks) != 1 || !w.Devices[50] || len(w.Devices) != 2 {
		t.Errorf("locks %v, devices %v", w.Locks, w.Devices)
	}
	if p := w.Processes[10]; p != (Process{10 * startOf, 4026531841, true}) || w.Processes[64].Waits {
		t.Errorf("%+v", w.Processes)
	}
}

// Who connects a unix socket, or sends datagrams from one, may wait for room at another that its
// own does not lead to. Who reads, polls, or has a connection does not.
func TestWantedSends(t *testing.T) {
	for _, c := range []struct {
		op     uint32
		family uint16
		sort   uint16
		want   uint64
	}{
		{kcdata.FileOpConnect, 1, 1, 0x2000}, {kcdata.FileOpConnect, 1, 5, 0x2000}, {kcdata.FileOpWrite, 1, 2, 0x2000}, {kcdata.FileOpWrite, 1, 1, 0},
		{kcdata.FileOpRead, 1, 2, 0}, {kcdata.FileOpPoll, 1, 2, 0}, {kcdata.FileOpConnect, 2, 1, 0}, {kcdata.FileOpWrite, 2, 2, 0},
	} {
		th := asleep(10, kcdata.LinuxFile{Op: c.op, Kind: kcdata.FileSocket, Fd: 9, Object: 0x2000})
		th.sockets = []kcdata.LinuxSocket{{Fd: 9, Family: c.family, Kind: c.sort}}
		if w := Wanted(raw(t, 4026531841, []sleeper{th})); len(w.Threads) != 1 || w.Threads[0].Sends != c.want {
			t.Errorf("op %d, family %d, sort %d: %+v", c.op, c.family, c.sort, w.Threads)
		}
	}
}

// More than is looked for is said.
func TestWantedTooMuch(t *testing.T) {
	w := &Wants{have: map[thing]bool{}}
	for i := range MaxWanted + 1 {
		w.end(bpf.WantedEnd{Object: uint64(i)})
	}
	if len(w.Ends) != MaxWanted || !w.TooMany {
		t.Errorf("%d, %v", len(w.Ends), w.TooMany)
	}
	w = &Wants{}
	for range MaxThreads + 1 {
		w.thread(&kcdata.LinuxThread{}, 0)
	}
	if len(w.Threads) != MaxThreads || !w.TooMany {
		t.Errorf("%d, %v", len(w.Threads), w.TooMany)
	}
}

// Short records, second ones, sockets that do not belong to their file, and damaged bytes: what is
// sound is used, the rest passed over, and the bytes are left as they are.
func TestWantedHostile(t *testing.T) {
	socket := kcdata.LinuxFile{Kind: kcdata.FileSocket, Fd: 9, Object: 0x2000}
	stranger := asleep(10, socket)
	stranger.sockets = []kcdata.LinuxSocket{{Fd: 8, LocalPort: 80}}
	if w := Wanted(raw(t, 1, []sleeper{stranger})); len(w.Ends) != 1 || w.Ends[0].LocalPort != 0 {
		t.Errorf("%+v", w.Ends)
	}
	crowd := asleep(10, slices.Repeat([]kcdata.LinuxFile{aPipe}, kcdata.MaxFilesOfThread+1)...)
	if w := Wanted(raw(t, 1, []sleeper{crowd})); !w.Empty() {
		t.Errorf("%+v", w.Ends)
	}
	good := raw(t, 1, []sleeper{asleep(10, aPipe), asleep(11, socket, aPipe)})
	b := good.Recorded[0].Pieces[0]
	was := slices.Clone(b)
	for cut := range b { // pieces may end anywhere
		good.Recorded[0].Pieces = [][]byte{b[:cut], b[cut:]}
		if w := Wanted(good); len(w.Ends) != 2 || len(w.Threads) != 2 {
			t.Fatalf("cut at %d: %+v", cut, w)
		}
		good.Recorded[0].Pieces = [][]byte{b[:cut]}
		if w := Wanted(good); len(w.Ends) > 2 {
			t.Fatalf("only %d bytes: %+v", cut, w)
		}
	}
	if !slices.Equal(b, was) {
		t.Error("the bytes are changed")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		bad := slices.Clone(b)
		for range 1 + r.IntN(8) {
			bad[r.IntN(len(bad))] = byte(r.Uint32())
		}
		good.Recorded[0].Pieces = [][]byte{bad}
		if w := Wanted(good); len(w.Ends) > 8 || len(w.Threads) > 2 {
			t.Fatalf("%+v", w)
		}
	}
}
