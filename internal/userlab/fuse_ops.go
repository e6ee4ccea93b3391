//go:build linux

package userlab

import (
	"bytes"
	"encoding/binary"

	"stackshot/internal/testfuse"

	"golang.org/x/sys/unix"
)

// Attributes and names are kept by the kernel for an hour: only content stalls, but of a
// NewDyingFS.
const fuseValid = 3600

func (fs *StalledFS) answer(s *testfuse.Server, r testfuse.Request) {
	switch r.Opcode {
	case testfuse.Forget, testfuse.BForget, testfuse.Intr: // want no answer
	case testfuse.Read:
		fs.read(s, r)
	case testfuse.Flush, testfuse.Release, testfuse.Reldir: // or nobody could end
		s.Reply(r, 0, nil)
	default:
		if fs.keepDead(r) {
			return
		}
		body, errno := fs.answerAtOnce(r)
		s.Reply(r, errno, body)
	}
}

func (fs *StalledFS) answerAtOnce(r testfuse.Request) ([]byte, unix.Errno) {
	switch r.Opcode {
	case testfuse.Lookup:
		return fs.lookup(string(bytes.TrimRight(r.Body, "\x00")))
	case testfuse.Getattr:
		attr, errno := fs.attr(r.Node)
		return testfuse.Wire(testfuse.AttrOut{Valid: fs.valid, Attr: attr}), errno
	case testfuse.Open:
		if f := fs.file(r.Node); f != nil {
			return testfuse.Wire(testfuse.OpenOut{Handle: r.Node, Flags: f.open}), 0
		}
		return nil, unix.ENOENT
	case testfuse.Statfs: // an overlay of it asks how long a name may be
		b := make([]byte, 80)
		binary.NativeEndian.PutUint32(b[44:], 255)
		return b, 0
	case testfuse.Opendir:
		return testfuse.Wire(testfuse.OpenOut{}), 0
	case testfuse.Readdir, testfuse.Flush, testfuse.Release, testfuse.Reldir, testfuse.Access:
		return nil, 0
	}
	return nil, unix.ENOSYS
}

func (fs *StalledFS) file(node uint64) *stalledFile {
	if node < 2 || node-2 >= uint64(len(fs.files)) {
		return nil
	}
	return &fs.files[node-2]
}

func (fs *StalledFS) attr(node uint64) (testfuse.Attr, unix.Errno) {
	if node == testfuse.Root {
		return testfuse.RootAttr(), 0
	}
	f := fs.file(node)
	if f == nil {
		return testfuse.Attr{}, unix.ENOENT
	}
	size := uint64(len(f.data))
	return testfuse.Attr{Ino: node, Size: size, Blocks: (size + 511) / 512, Mode: f.mode, Nlink: 1, Blksize: 4096}, 0
}

func (fs *StalledFS) lookup(name string) ([]byte, unix.Errno) {
	for i := range fs.files {
		if fs.files[i].name == name {
			attr, _ := fs.attr(uint64(i + 2))
			return testfuse.Wire(testfuse.EntryOut{Node: uint64(i + 2), EntryValid: fs.valid, AttrValid: fs.valid, Attr: attr}), 0
		}
	}
	return nil, unix.ENOENT
}

// read keeps a request for what stalls until Release.
func (fs *StalledFS) read(s *testfuse.Server, r testfuse.Request) {
	if f := fs.file(r.Node); f != nil && fs.keep(r, f) {
		return
	}
	s.Reply(r, 0, fs.content(r))
}

func (fs *StalledFS) keep(r testfuse.Request, f *stalledFile) bool {
	in := r.IO()
	if in.Offset+uint64(in.Size) < f.from {
		return false
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.stalled[f.name] = true
	if !fs.free || fs.dead {
		fs.waiting = append(fs.waiting, r)
	}
	return !fs.free || fs.dead
}

func (fs *StalledFS) keepDead(r testfuse.Request) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.dead {
		fs.waiting = append(fs.waiting, r)
	}
	return fs.dead
}

func (fs *StalledFS) content(r testfuse.Request) []byte {
	f := fs.file(r.Node)
	if f == nil {
		return nil
	}
	in := r.IO()
	size := uint64(len(f.data))
	from := min(in.Offset, size)
	return f.data[from:min(from+uint64(in.Size), size)]
}
