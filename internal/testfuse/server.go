//go:build linux

// Package testfuse serves FUSE file systems that hang where a test wants them to.
// It knows the protocol; what is answered, and what never, is the test's.
package testfuse

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Request is one that wants an answer, or is left without.
type Request struct {
	InHeader
	Body []byte
}

// IO reads the beginning of a Read's or a Write's body; zeros if it is too short.
func (r Request) IO() (in IO) {
	binary.Decode(r.Body, binary.NativeEndian, &in)
	return in
}

// Server is one mounted file system. The process that has it must touch nothing
// of that itself: it would wait for itself.
type Server struct {
	dev   *os.File
	ready chan struct{} // closed when the kernel has been answered for the first time
	done  chan struct{} // closed when serve has ended
	close func() error
}

// initTime is how long the kernel may take to begin.
const initTime = 10 * time.Second

// Mount mounts a file system at dir, in the mount namespace of the thread, and
// gives its requests to answer, one after the other, on a goroutine. answer calls
// Reply, now or later or not at all. Needs root and /dev/fuse.
func Mount(dir, name string, answer func(*Server, Request)) (*Server, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/fuse: %w", err)
	}
	opts := fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", fd)
	if err := unix.Mount(name, dir, "fuse."+name, unix.MS_NODEV|unix.MS_NOSUID, opts); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("mount of a FUSE file system at %s: %w", dir, err)
	}
	// Known to the poller only now: before the mount poll says error.
	s := &Server{dev: os.NewFile(uintptr(fd), "/dev/fuse"), ready: make(chan struct{}), done: make(chan struct{})}
	s.close = sync.OnceValue(s.dev.Close)
	go s.serve(answer)
	// Whoever touches the mount before that waits for it in the kernel, where no
	// deadline of a test reaches: a stat by this process among them.
	select {
	case <-s.ready:
		return s, nil
	case <-s.done:
	case <-time.After(initTime):
	}
	return nil, errors.Join(fmt.Errorf("FUSE file system at %s: the kernel does not begin", dir), unix.Unmount(dir, unix.MNT_DETACH), s.Close())
}

// Close ends the connection and every wait on it, whoever waits. It does not
// unmount. A second call does nothing.
func (s *Server) Close() error {
	err := s.close()
	<-s.done
	return err
}

func (s *Server) serve(answer func(*Server, Request)) {
	defer close(s.done)
	buf := make([]byte, maxWrite+os.Getpagesize())
	for {
		n, err := s.dev.Read(buf)
		switch {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EINTR): // the request was given up
			continue
		case err != nil:
			return
		}
		var r Request
		head := binary.Size(r.InHeader)
		if n < head {
			return
		}
		binary.Decode(buf[:n], binary.NativeEndian, &r.InHeader)
		r.Body = bytes.Clone(buf[head:n])
		if r.Opcode == initOp {
			s.Reply(r, 0, Wire(initOut{Major: major, Minor: minor, MaxReadahead: 1 << 16,
				MaxBackground: 64, Congestion: 48, MaxWrite: maxWrite, TimeGran: 1}))
			close(s.ready) // there is one such request to a mount
			continue
		}
		answer(s, r)
	}
}

// Reply answers a request. That may fail, because the one who asked was killed or
// the mount is gone.
func (s *Server) Reply(r Request, errno unix.Errno, body []byte) {
	h := outHeader{Error: -int32(errno), Unique: r.Unique}
	h.Len = uint32(binary.Size(h) + len(body))
	s.dev.Write(append(Wire(h), body...))
}
