package bpf

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// roomForFiles lets this process have n more descriptors until the test ends.
func roomForFiles(t testing.TB, n int) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	more := unix.Rlimit{Cur: uint64(n + 4096), Max: max(was.Max, uint64(n+4096))}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &more); err != nil {
		testneed.Lacking(t, "%d open files: %v", n, err)
	}
	t.Cleanup(func() { unix.Setrlimit(unix.RLIMIT_NOFILE, &was) })
}

// manySockets has other processes open n pairs and gives what a thread at one end of each
// would ask for.
func manySockets(t testing.TB, n int) (wanted []WantedEnd) {
	t.Helper()
	list := newLister(t)
	for ; n > 0; n -= 1500 {
		h := hold(t, fmt.Sprint("sockets ", min(n, 1500)))
		one := map[uint64]bool{}
		for _, e := range list.of(t, h.pid) {
			if e.Kind == kcdata.FileSocket && !one[e.Object] {
				one[e.Peer] = true
				wanted = append(wanted, wants(e))
			}
		}
	}
	return wanted
}

// Among 20,000 descriptors every other end is found, also if more are wanted than the maps
// have room for at first. How long it takes is printed.
func TestEndsAmongManyFiles(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	pass := newPass(t)
	wanted := manySockets(t, 10_000)
	for _, few := range []int{100, len(wanted)} {
		best := time.Hour
		var found *FoundEnds
		for range 5 {
			found = lookFor(t, pass, wanted[:few])
			best = min(best, time.Duration(found.Ns))
		}
		t.Logf("%d descriptors, %d wanted, %d ends: %v", found.Looked, few, len(found.Ends), best)
		peers := map[uint64]int{}
		for _, e := range found.Ends {
			if e.Flags&kcdata.EndPeer != 0 {
				peers[e.Of]++
			}
		}
		if len(peers) != few || len(found.Ends) != 2*few || found.Looked < 20_000 {
			t.Errorf("%d of %d peers, %d ends, %d descriptors", len(peers), few, len(found.Ends), found.Looked)
		}
	}
	if len(wanted) != 10_000 || pass.room < 2*len(wanted) {
		t.Errorf("room for %d, and %d were wanted", pass.room, 2*len(wanted))
	}
}

// A pass ends in time, and says what it did not do: that its time was up comes before that
// there was no more room.
func TestEndsInTime(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	pass := newPass(t)
	wanted := manySockets(t, 5000)[:50]
	look := func(left time.Duration, threads ...WantedThread) *FoundEnds {
		t.Helper()
		if pass.running != nil {
			<-pass.running // a slow machine may have left it behind
		}
		found, err := pass.Look(wanted, threads, time.Now().Add(left))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	pass.most = 10
	if f := look(0, WantedThread{Tid: uint32(os.Getpid()), Start: 1}); !f.TimeUp || f.TooMany || len(f.Ends) != 0 || len(f.Waiters) != 0 {
		t.Errorf("without time: %+v", f)
	}
	if f := look(20 * time.Second); f.TimeUp || !f.TooMany || len(f.Ends) != 10 || f.Looked < 10_000 {
		t.Errorf("room for 10: %+v", f)
	}
	pass.most = maxEnds
	cut := false
	for left := 100 * time.Microsecond; left < 20*time.Second && !cut; left = left * 9 / 8 {
		f := look(left)
		if !f.TimeUp {
			break
		}
		cut = f.Looked > 0 && f.Looked < 10_000
	}
	if !cut {
		t.Error("no pass ended in the midst of the descriptors")
	}
	for range 20 { // whether it is left behind or not
		f, err := pass.Look(wanted, nil, time.Now().Add(-time.Hour))
		if !errors.Is(err, errLeftBehind) && (err != nil || !f.TimeUp) {
			t.Fatalf("no time at all: %+v, %v", f, err)
		}
	}
	if f := lookFor(t, pass, wanted); len(f.Ends) != 2*len(wanted) { // nothing of that is left
		t.Errorf("%d ends of %d", len(f.Ends), len(wanted))
	}
}

// The many readers of a pipe leave room for those who write to it; the rest is counted.
func TestEndsCrowded(t *testing.T) {
	testneed.Live(t)
	pass := newPass(t)
	roomForFiles(t, 1000)
	p := pipePair(t)
	for range 300 {
		fd, err := unix.FcntlInt(p.ours.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		file(t, fd, err)
	}
	for range 100 {
		fd, err := unix.FcntlInt(p.theirs.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		file(t, fd, err)
	}
	found := lookFor(t, pass, []WantedEnd{wants(newLister(t).fd(t, p.ours))})
	readers, writers := 0, 0
	for _, e := range found.Ends {
		switch e.Flags & (kcdata.EndReads | kcdata.EndWrites) {
		case kcdata.EndReads:
			readers++
		case kcdata.EndWrites:
			writers++
		}
		if e.Refs != 301 && e.Refs != 101 {
			t.Errorf("descriptor %d has %d references", e.Fd, e.Refs)
		}
	}
	if readers != 64 || writers != 64 || found.Crowded != 301-64+101-64 || found.TooMany {
		t.Errorf("%d readers, %d writers, %d beside", readers, writers, found.Crowded)
	}
}

// While descriptors come and go, and processes begin and end, what stays is found in every
// pass, and nobody is said to have a file that he never had.
func TestEndsAmongChange(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	pass := newPass(t)
	roomForFiles(t, 4096)
	p := pipePair(t)
	them := hold(t, "hold", p.theirs)
	wanted := []WantedEnd{wants(newLister(t).fd(t, p.ours))}
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { churnFiles(t, stop) })
	all.Go(func() { churnProcesses(t, stop) })
	defer all.Wait()
	defer close(stop)
	self := uint32(os.Getpid())
	for range testneed.Length(30, 1000) {
		found := lookFor(t, pass, wanted)
		for _, e := range found.Ends {
			// A process that has just begun has what it inherits, until it runs its program.
			own := e.Tgid == self && (e.Fd == int32(p.ours.Fd()) || e.Fd == int32(p.theirs.Fd()))
			young := e.Tgid > uint32(them.pid) && (e.Fd == int32(p.ours.Fd()) || e.Fd == int32(p.theirs.Fd()))
			if !own && !young && (int(e.Tgid) != them.pid || e.Fd != 3) || e.Inode != wanted[0].Inode {
				t.Errorf("process %d, descriptor %d: %+v", e.Tgid, e.Fd, e)
			}
		}
		if e, ok := theEnd(found, wanted[0].Object, them.pid, 3); !ok || e.Flags != kcdata.EndWrites|kcdata.EndSame {
			t.Errorf("the writer was not found: %+v", found.Ends)
		}
	}
}

func over(stop chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// churnFiles opens and closes what has ends of every sort.
func churnFiles(t *testing.T, stop chan struct{}) {
	for !over(stop) {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			t.Error(err)
			return
		}
		s, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		e, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		if err != nil {
			t.Error(err)
			return
		}
		for _, fd := range []int{p[0], p[1], s[0], s[1], e} {
			unix.Close(fd)
		}
	}
}

// churnProcesses starts processes that end at once.
func churnProcesses(t *testing.T, stop chan struct{}) {
	exe, err := os.Executable()
	if err != nil {
		t.Error(err)
		return
	}
	for !over(stop) {
		p, err := os.StartProcess(exe, []string{exe}, &os.ProcAttr{Env: append(os.Environ(), holdVar+"=stat /")})
		if err != nil {
			t.Error(err)
			return
		}
		p.Wait()
	}
}
