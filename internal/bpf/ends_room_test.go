package bpf

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// unixAt is a socket with an address, or one without.
func unixAt(t testing.TB, sort int, path string) *os.File {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, sort|unix.SOCK_CLOEXEC, 0)
	if err == nil && path != "" {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: path})
	}
	return file(t, fd, err)
}

// fullQueue is a socket in whose queue there is no room, with another that is told when there
// is, without a thread that waits.
func fullQueue(t testing.TB, sort int, path string) *os.File {
	t.Helper()
	full, other := unixAt(t, sort, path), unixAt(t, sort, "")
	if sort != unix.SOCK_DGRAM {
		if err := unix.Listen(int(full.Fd()), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Connect(int(other.Fd()), &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if sort != unix.SOCK_DGRAM {
		return full
	}
	var err error
	for err == nil {
		err = unix.Sendto(int(other.Fd()), []byte("hello"), unix.MSG_DONTWAIT, nil)
	}
	if n, e := unix.Poll([]unix.PollFd{{Fd: int32(other.Fd()), Events: unix.POLLOUT}}, 0); err != unix.EAGAIN || n != 0 || e != nil {
		t.Fatal(err, n, e)
	}
	return full
}

// Who sleeps until there is room in a queue is joined to who has the queue: each to its own,
// and only if it was asked for, by the number and the start of the thread.
func TestEndsOfFullQueues(t *testing.T) {
	testneed.Live(t)
	if known, err := KnownEndTypes(); err != nil || !known.Unix {
		t.Skip("this kernel has no type information of unix sockets: ", err)
	}
	pass, list := newPass(t), newLister(t)
	for _, c := range []struct {
		name  string
		sort  int
		flags uint32
	}{
		{"stream", unix.SOCK_STREAM, kcdata.EndListens | kcdata.EndAccepts},
		{"packets", unix.SOCK_SEQPACKET, kcdata.EndListens | kcdata.EndAccepts},
		{"datagrams", unix.SOCK_DGRAM, kcdata.EndPeer},
	} {
		var full []*os.File
		var ends []WantedEnd
		var threads []WantedThread
		for _, name := range []string{"a", "b"} {
			path := filepath.Join(t.TempDir(), name)
			full = append(full, fullQueue(t, c.sort, path))
			sender := hold(t, "crowd "+path, unixAt(t, c.sort, ""))
			n, open := switches(t, sender.tid), list.of(t, sender.pid)
			ends = append(ends, wants(open[3]))
			threads = append(threads, WantedThread{Tid: uint32(sender.tid), Start: open[3].Start, Switches: n, Sends: open[3].Object})
			t.Cleanup(func() { sender.cmd.Process.Kill() })
		}
		them := hold(t, "hold", full...)
		found := lookFor(t, pass, ends, threads...)
		for i, th := range threads {
			var got []kcdata.LinuxEnd
			for _, e := range found.Ends {
				if e.Of == th.Sends && int(e.Tgid) == them.pid {
					got = append(got, e)
				}
			}
			want := kcdata.EndReads | kcdata.EndWrites | kcdata.EndRoom | c.flags
			if len(got) != 1 || got[0].Fd != int32(3+i) || got[0].Flags != want || got[0].Object != list.fd(t, full[i]).Object {
				t.Errorf("%s: of sender %d there is %+v; want descriptor %d, flags %#x", c.name, i, got, 3+i, want)
			}
		}
		threads[0].Start++   // of its number, but it began at another time
		threads[1].Sends = 0 // it does not wait so
		for _, e := range lookFor(t, pass, ends, threads...).Ends {
			if e.Flags&kcdata.EndRoom != 0 {
				t.Errorf("%s: nobody wanted %+v", c.name, e)
			}
		}
	}
}
