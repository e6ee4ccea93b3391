package hang

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// contradiction is how the records of a made file disagree. With any but none, they accuse nobody.
type contradiction int

const (
	none      contradiction = iota
	moved                   // no thread still waits as it did
	notTaken                // the file says that open files were not recorded
	unread                  // the window could not read the files
	ofNothing               // the ends are of things at which nobody waits, and no lock is of a file
	younger                 // the processes with the ends began after those of the file
	contradictions
)

// filesMaker makes a file of records of open files out of bytes.
type filesMaker struct {
	data []byte
	how  contradiction
	pids uint64
}

func (m *filesMaker) next() (b uint64) {
	if len(m.data) > 0 {
		b, m.data = uint64(m.data[0]), m.data[1:]
	}
	return b
}

// fill gives every number of a record a value: a small one mostly, so that records meet.
func (m *filesMaker) fill(record any) {
	v := reflect.ValueOf(record).Elem()
	for i := range v.NumField() {
		n := m.next()
		if n >= 0xf0 {
			n = n * 0x9e3779b97f4a7c15 >> (n & 7 * 8)
		} else {
			n %= 8
		}
		switch f := v.Field(i); {
		case f.CanUint():
			f.SetUint(n & (1<<(8*f.Type().Size()) - 1))
		case f.CanInt():
			f.SetInt(int64(int32(n)))
		case f.Kind() == reflect.Array && f.Type().Elem().Kind() == reflect.Uint8:
			for k := range min(f.Len(), int(n&15)) {
				f.Index(k).SetUint(m.next())
			}
		}
	}
}

func startOf(pid uint64) uint64 { return 1000 + pid }

var (
	fileCalls  = []int64{0, 1, 45, 43, 7, 232, 73, 72, 270, 16, -1}
	fileFrames = []string{"anon_pipe_read", "unix_stream_read_generic", "tcp_recvmsg", "do_sys_poll", "ep_poll", "flock_lock_inode_wait", "fcntl_setlk", "request_wait_answer", "n_tty_read", "handle_userfault"}
)

// file writes it.
func (m *filesMaker) file(t testing.TB) []byte {
	m.how, m.pids = contradiction(m.next())%contradictions, 1+m.next()%8
	w := kcdata.NewWriter(make([]byte, 1<<20))
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.Begin(kcdata.MagicStackshot))
	must(w.String(kcdata.TypeLinuxArch, "x86_64"))
	must(w.Struct(kcdata.TypeLinuxMachine, kcdata.LinuxMachine{PidNSIsFirst: 1}))
	must(w.StructArray(kcdata.TypeLinuxCPU, []kcdata.LinuxCPU{{Flags: kcdata.CPUStopped | kcdata.CPUWorked, RqClock: 1e12, RqClockAt: 1e12}}))
	var symbols []kcdata.LinuxSymbol
	names := []byte{0}
	for i, f := range fileFrames {
		symbols = append(symbols, kcdata.LinuxSymbol{Addr: uint64(i+1) << 4, Name: uint32(len(names))})
		names = append(append(names, f...), 0)
	}
	must(w.StructArray(kcdata.TypeLinuxSymbol, symbols))
	must(w.Bytes(kcdata.TypeLinuxStrings, names))
	for pid := range m.pids {
		must(w.BeginContainer(kcdata.TypeTask, 10+pid))
		must(w.Struct(kcdata.TypeLinuxTask, kcdata.LinuxTask{Present: kcdata.TaskHasIDs, Tgid: uint32(10 + pid), Ppid: 1}))
		for n := range 1 + m.next()%3 {
			m.thread(must, w, 10+pid, n)
		}
		must(w.EndContainer(10 + pid))
	}
	m.after(must, w)
	must(w.End())
	return w.Written()
}

func (m *filesMaker) thread(must func(error), w *kcdata.Writer, pid, n uint64) {
	tid := pid + 100*n
	must(w.BeginContainer(kcdata.TypeThread, tid))
	state := uint32(kcdata.StateInterruptible)
	if pid%3 == 1 { // whoever waits for it has a culprit
		state = kcdata.StateStopped
	}
	must(w.Struct(kcdata.TypeLinuxThread, kcdata.LinuxThread{Present: kcdata.ThreadHasOnCPU | kcdata.ThreadHasStart | kcdata.ThreadHasSchedInfo,
		State: state, Tid: uint32(tid), Tgid: uint32(pid), StartBoottime: startOf(tid), LastArrival: 1e9}))
	must(w.Uint64s(kcdata.TypeKernStackLR64, []uint64{(1 + m.next()%uint64(len(fileFrames))) << 4}))
	must(w.Struct(kcdata.TypeLinuxSyscall, kcdata.LinuxSyscall{Nr: fileCalls[m.next()%uint64(len(fileCalls))], Args: [6]uint64{m.next() % 8, m.next(), m.next()}}))
	files := make([]kcdata.LinuxFile, m.next()%4)
	var sockets []kcdata.LinuxSocket
	for i := range files {
		f := &files[i]
		m.fill(f)
		f.Flags, f.Kind = uint32(m.next()|m.next()<<8&0x700), uint32(m.next()%20)
		f.Flags = f.Flags&^(kcdata.FileStill|kcdata.FileMoved) | kcdata.FileStill
		if m.next()%4 > 0 {
			m.likely(f)
		}
		switch m.how {
		case moved:
			f.Flags = f.Flags&^kcdata.FileStill | kcdata.FileMoved
		case unread:
			f.Flags |= kcdata.FileUnread
		}
		if f.Kind == kcdata.FileSocket {
			var k kcdata.LinuxSocket
			m.fill(&k)
			k.Fd, k.PeerTgid = f.Fd, 0 // who connected is known in the window: it is not of what follows
			sockets = append(sockets, k)
		}
	}
	if len(files) > 0 {
		must(w.StructArray(kcdata.TypeLinuxFile, files))
	}
	if len(sockets) > 0 {
		must(w.StructArray(kcdata.TypeLinuxSocket, sockets))
	}
	must(w.EndContainer(tid))
}

// likely makes a file as sound ones are: a pipe, a socket or a lock that is waited for.
func (m *filesMaker) likely(f *kcdata.LinuxFile) {
	f.Flags = kcdata.FileStill | kcdata.FileToRead | kcdata.FilePeerKnown
	f.Kind, f.Op, f.Object, f.Peer = kcdata.FilePipe, kcdata.FileOpRead, 1+m.next()%4, 0
	f.Readers, f.Writers, f.Inode, f.Dev, f.Bytes = 1, 2, f.Object, 1, 0
	switch m.next() % 3 {
	case 0:
		f.Kind, f.Op = kcdata.FileRegular, []uint32{kcdata.FileOpFlock, kcdata.FileOpPOSIX, kcdata.FileOpOFD}[m.next()%3]
	case 1:
		f.Kind, f.Peer = kcdata.FileSocket, 1+m.next()%4
	}
}

// probable makes an end likewise.
func (m *filesMaker) probable(e *kcdata.LinuxEnd) {
	e.Kind, e.Of, e.Object, e.Peer, e.Refs = kcdata.FilePipe, 1+m.next()%4, 0, 0, 1
	e.Inode, e.Dev, e.Flags, e.BytesIn = e.Of, 1, kcdata.EndSame|kcdata.EndWrites, 0
	e.Object = e.Of
	switch m.next() % 3 {
	case 0:
		e.Kind, e.Flags, e.LockKind = kcdata.FileRegular, kcdata.EndSame|kcdata.EndLocks, uint32(1+m.next()%3)
	case 1:
		e.Kind, e.Flags, e.Object, e.Peer, e.BytesIn = kcdata.FileSocket, kcdata.EndPeer|kcdata.EndReads|kcdata.EndWrites, 1+m.next()%4, e.Of, m.next()%3
	}
}

// after writes what was read after the release.
func (m *filesMaker) after(must func(error), w *kcdata.Writer) {
	must(w.Struct(kcdata.TypeLinuxWaitTaken, kcdata.LinuxWaitTaken{Sources: 1<<7 - 1}))
	if m.how != notTaken {
		must(w.Struct(kcdata.TypeLinuxFilesTaken, kcdata.LinuxFilesTaken{Sources: 1<<10 - 1, Flags: uint32(m.next() & 0x7f >> (m.next() % 32))}))
	}
	ends := make([]kcdata.LinuxEnd, m.next()%32)
	for i := range ends {
		e := &ends[i]
		m.fill(e)
		e.Tgid = uint32(10 + m.next()%(m.pids+1))
		e.Start, e.Flags, e.Kind = startOf(uint64(e.Tgid)), uint32(m.next()|m.next()<<8&0x100), uint32(m.next()%20)
		if m.next()%4 > 0 {
			m.probable(e)
		}
		switch m.how {
		case ofNothing:
			e.Of, e.Object, e.Peer, e.Inode, e.Dev = 1<<40, 1<<41, 0, 1<<42, 1<<43
		case younger:
			e.Start += 1e9
		}
	}
	locks := make([]kcdata.LinuxFileLock, m.next()%8)
	for i := range locks {
		l := &locks[i]
		m.fill(l)
		l.Tgid, l.Flags = uint32(10+m.next()%(m.pids+1)), uint32(m.next()%16)
		l.Began = startOf(uint64(l.Tgid))
		switch m.how {
		case ofNothing:
			l.Inode = 1 << 42
		case younger:
			l.Began += 1e9
		}
	}
	mounts, requests := make([]kcdata.LinuxMount, m.next()%3), make([]kcdata.LinuxFUSE, 0, 8)
	for i := range mounts {
		m.fill(&mounts[i])
	}
	if m.how == none {
		requests = requests[:m.next()%8]
	}
	for i := range requests {
		m.fill(&requests[i])
		requests[i].Tid = uint32(10 + m.next()%(m.pids+1))
	}
	if len(ends) > 0 {
		must(w.StructArray(kcdata.TypeLinuxEnd, ends))
	}
	if len(locks) > 0 {
		must(w.StructArray(kcdata.TypeLinuxFileLock, locks))
	}
	if len(mounts) > 0 {
		must(w.StructArray(kcdata.TypeLinuxMount, mounts))
	}
	if len(requests) > 0 {
		must(w.StructArray(kcdata.TypeLinuxFUSE, requests))
	}
}

// FuzzFiles: whatever the records of open files say, and wherever they point, the verdict is
// made in bounds and shown. If they contradict each other, nobody is accused.
func FuzzFiles(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0, 1, 2, 3}, 300))
	for seed := range uint64(4) {
		f.Add(randomBytes(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { tellFiles(t, &filesMaker{data: data}) })
}

func randomBytes(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 14))
	data := make([]byte, 8000)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// tellFiles makes the file, and holds what is told of it against the promises.
func tellFiles(t *testing.T, m *filesMaker) *waitgraph.Verdict {
	t.Helper()
	s, err := kcdata.ParseSnapshot(m.file(t))
	if err != nil {
		t.Fatal(err)
	}
	v := waitgraph.Judge(waits.Of(s), waitgraph.Options{})
	w := &world{s, v}
	checkForms(t, w, Options{Width: 100})
	if n := len(written(t, "json", w, Options{})); n > 2<<20 {
		t.Fatalf("%d bytes of JSON", n)
	}
	wantBacked(t, s, v.Waits)
	if m.how != none {
		wantNobody(t, m.how, v)
	}
	return v
}

// wantBacked wants a record behind each owner that is told by files: of the process, as it
// began.
func wantBacked(t *testing.T, s *kcdata.Snapshot, w *waits.Waits) {
	t.Helper()
	began := map[[2]uint64]bool{}
	for _, e := range s.Ends {
		began[[2]uint64{uint64(e.Tgid), e.Start}] = true
	}
	for _, l := range s.FileLocks {
		began[[2]uint64{uint64(l.Tgid), l.Began}] = true
	}
	for _, x := range w.All {
		for _, o := range x.Owners {
			if o.Whole && o.Thread != nil && o.Thread.ID == o.Task.ID && !began[[2]uint64{o.Task.ID, o.Thread.Linux.StartBoottime}] && x.File != nil && x.File.Says != waits.OwnEnd {
				t.Fatalf("an owner of whom no record tells: %+v of %+v", o, x)
			}
		}
	}
}

// wantNobody wants no verdict in which somebody is accused.
func wantNobody(t *testing.T, how contradiction, v *waitgraph.Verdict) {
	t.Helper()
	if len(v.Deadlocks) > 0 {
		t.Fatalf("contradiction %d: a deadlock of %+v", how, v.Deadlocks[0].Cycle[0])
	}
	for _, c := range v.Culprits {
		if c.Owner.Thread != nil {
			t.Fatalf("contradiction %d: %+v is accused: %s", how, c.Owner, c.Reason)
		}
	}
}

// TestFilesAreTold: among made files without contradictions some have a verdict, so that the
// absence of one says something.
func TestFilesAreTold(t *testing.T) {
	accused := 0
	for seed := range uint64(1_500) {
		data := randomBytes(seed)
		data[0] = byte(seed) % byte(contradictions)
		if v := tellFiles(t, &filesMaker{data: data}); v.Hangs() {
			accused++
		}
	}
	if accused < 5 {
		t.Errorf("%d of the files have a verdict", accused)
	}
}
