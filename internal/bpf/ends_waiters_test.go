package bpf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/capture"
	"stackshot/internal/testfuse"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// switches are a thread's context switches once it sleeps; it sleeps as long as nobody
// wakes it.
func switches(t testing.TB, tid int) (sum uint64) {
	t.Helper()
	for range 1000 {
		was := sum
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
		if err != nil {
			t.Fatal(err)
		}
		var state string
		sum = 0
		for _, line := range splitLines(string(b)) {
			var n uint64
			if c, _ := fmt.Sscanf(line, "State:\t%1s", &state); c == 1 {
				continue
			}
			if c, _ := fmt.Sscanf(line, "voluntary_ctxt_switches:\t%d", &n); c == 1 {
				sum += n
			}
			if c, _ := fmt.Sscanf(line, "nonvoluntary_ctxt_switches:\t%d", &n); c == 1 {
				sum += n
			}
		}
		if state == "S" && sum == was && sum > 0 {
			return sum
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatalf("thread %d does not come to rest", tid)
	return 0
}

// A thread that has not run still waits; one that ran, or is gone, does not. Whether its
// process handles signals is what it set up itself.
func TestEndsOfThreads(t *testing.T) {
	testneed.Live(t)
	pass, list := newPass(t), newLister(t)
	ran, rests, quiet, gone := hold(t, "hold"), hold(t, "hold"), hold(t, "quiet"), hold(t, "hold")
	var asked []WantedThread
	for _, h := range []*holder{ran, rests, quiet, gone} {
		start := list.of(t, h.pid)[0].Start
		asked = append(asked, WantedThread{Tid: uint32(h.tid), Start: start, Switches: switches(t, h.tid)})
	}
	if n, err := ran.in.Write([]byte("x")); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for range 1000 {
		if switches(t, ran.tid) != asked[0].Switches {
			break
		}
	}
	gone.end()
	other := asked[1]
	other.Start++ // of its number, but it began at another time
	found := lookFor(t, pass, nil, append(asked, other)...)
	want := []capture.Waiter{{Catches: true}, {Still: true, Catches: true}, {Still: true}, {}, {}}
	for i, a := range append(asked, other) {
		got, ok := found.Waiters[capture.WaiterID{Tid: a.Tid, Start: a.Start}]
		if !ok || got != want[i] {
			t.Errorf("thread %d: %+v, looked at %v; want %+v", i, got, ok, want[i])
		}
	}
}

// A POSIX lock belongs to the process that took it: who only has the file open does not
// have it.
func TestEndsOfPOSIXLock(t *testing.T) {
	testneed.Live(t)
	pass, list := newPass(t), newLister(t)
	f, err := os.Create(filepath.Join(t.TempDir(), "locked"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	owner := hold(t, "posix", f)
	hold(t, "hold", f)
	w := wants(list.fd(t, f))
	w.Lock = true
	found := lookFor(t, pass, []WantedEnd{w})
	if len(found.Ends) != 1 || int(found.Ends[0].Tgid) != owner.pid || found.Ends[0].LockKind != kcdata.FileLockPOSIX || found.Ends[0].Flags&kcdata.EndLocks == 0 {
		t.Errorf("%+v, want process %d alone", found.Ends, owner.pid)
	}
}

// Who waits in a page fault has no descriptor: all userfaultfds are found, each with the
// process whose memory it serves.
func TestEndsOfUserfaultfd(t *testing.T) {
	testneed.Live(t)
	pass := newPass(t)
	fd, err := userfaultfd(t)
	f := file(t, fd, err)
	server := hold(t, "hold", f)
	found := lookFor(t, pass, []WantedEnd{{Kind: kcdata.FileUserfaultfd}})
	for pid, fd := range map[int]int32{server.pid: 3, os.Getpid(): int32(f.Fd())} {
		e, ok := kcdata.LinuxEnd{}, false
		for _, x := range found.Ends {
			if int(x.Tgid) == pid && x.Fd == fd {
				e, ok = x, true
			}
		}
		if !ok || e.Kind != kcdata.FileUserfaultfd || e.Flags&kcdata.EndServes == 0 || e.Of != e.Object || e.Object == 0 || e.Peer == 0 {
			t.Errorf("process %d, descriptor %d: %+v, %v", pid, fd, e, ok)
		}
		if e.Backlog != uint32(os.Getpid()) && !(e.Backlog == 0 && !hasOwner(t)) {
			t.Errorf("it serves process %d, want %d", e.Backlog, os.Getpid())
		}
	}
	none := lookFor(t, pass, []WantedEnd{{Kind: kcdata.FilePipe, Object: 1}})
	if len(none.Ends) != 0 {
		t.Errorf("nobody wanted %+v", none.Ends)
	}
}

// A request without an answer names who asks, and the file system by the device of its
// files; the server is found though nobody wanted it.
func TestEndsOfFUSE(t *testing.T) {
	testneed.Live(t)
	pass := newPass(t)
	dir := t.TempDir()
	asked := make(chan bool, 1)
	server, err := testfuse.Mount(dir, "ends", func(s *testfuse.Server, r testfuse.Request) {
		select {
		case asked <- true:
		default:
		}
	})
	if err != nil {
		t.Skip(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	defer server.Close()
	client := hold(t, "stat "+dir+"/x")
	<-asked
	found := lookForAll(t, pass, nil)
	var of kcdata.LinuxFUSE
	for _, r := range found.FUSE {
		if int(r.Tid) == client.tid {
			of = r
		}
	}
	if !fuseKnown(t) {
		t.Skip("this kernel has no type information of FUSE")
	}
	dev := deviceOfMount(t, dir)
	if of.Dev != dev || of.Flags != kcdata.FUSESent || of.Conn == 0 || of.Unique == 0 || of.Node != testfuse.Root || of.Opcode == 0 {
		t.Errorf("request %+v of %+v; the file system is %#x, it was sent, of node %d", of, found.FUSE, dev, testfuse.Root)
	}
	ok := false
	for _, e := range found.Ends {
		if e.Kind == kcdata.FileFUSE && e.Dev == dev {
			ok = int(e.Tgid) == os.Getpid() && e.Flags&kcdata.EndServes != 0 && e.Object == of.Conn && e.Of == of.Conn
		}
	}
	if !ok {
		t.Errorf("the server is not among %+v", found.Ends)
	}
	server.Close() // ends the wait
	client.end()
}

// Numbers are those of the recorded pid namespace; who is not in it has none.
func TestEndsInNamespace(t *testing.T) {
	testneed.Live(t)
	pass, err := OpenEndPass(EndPassOptions{Level: ownLevel(t) + 1})
	mustLoad(t, err)
	defer pass.Close()
	list := newLister(t)
	p := pipePair(t)
	inside := holdWith(t, &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}, "hold", p.theirs)
	own := list.fd(t, p.ours)
	asked := WantedThread{Tid: 1, Start: list.of(t, inside.pid)[3].Start, Switches: switches(t, inside.pid)}
	found := lookFor(t, pass, []WantedEnd{wants(own)}, asked)
	if inside.tid != 1 {
		t.Fatalf("it is %d in its namespace", inside.tid)
	}
	if e, ok := theEnd(found, own.Object, 1, 3); !ok || e.Start != asked.Start {
		t.Errorf("process 1 of the namespace is not among %+v", found.Ends)
	}
	if _, ok := theEnd(found, own.Object, 0, int32(p.ours.Fd())); !ok {
		t.Errorf("we, who are not in it, are not among %+v", found.Ends)
	}
	if w := found.Waiters[capture.WaiterID{Tid: 1, Start: asked.Start}]; !w.Still {
		t.Errorf("its thread: %+v", w)
	}
}

// ownLevel is how deep our own pid namespace is.
func ownLevel(t testing.TB) uint32 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range splitLines(string(b)) {
		if numbers, ok := strings.CutPrefix(line, "NSpid:"); ok {
			return uint32(len(strings.Fields(numbers)) - 1)
		}
	}
	t.Fatal("no NSpid")
	return 0
}
