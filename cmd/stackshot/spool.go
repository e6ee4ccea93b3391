package main

import (
	"bufio"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

// spool holds bytes in a memory file: they grow without being copied, take no
// part in the Go heap, and can be handed to the helper process that writes the
// target as an open file.
type spool struct {
	file *os.File
	buf  *bufio.Writer
	mem  []byte // the file, mapped; nil before bytes
}

func newSpool(name string) (*spool, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory file for the %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	return &spool{file: f, buf: bufio.NewWriterSize(f, 256<<10)}, nil
}

// Write appends.
func (s *spool) Write(b []byte) (int, error) { return s.buf.Write(b) }

// bytes maps what was written. It is called once, after the last Write.
func (s *spool) bytes() ([]byte, error) {
	n, err := s.size()
	if err != nil || n == 0 {
		return nil, err
	}
	s.mem, err = unix.Mmap(int(s.file.Fd()), 0, int(n), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of the snapshot: %w", n, err)
	}
	return s.mem, nil
}

func (s *spool) size() (int64, error) {
	if err := s.buf.Flush(); err != nil {
		return 0, err
	}
	st, err := s.file.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (s *spool) close() {
	if s.mem != nil {
		unix.Munmap(s.mem)
	}
	s.file.Close()
}

// compress gives what a file holds for plain: in the envelope e, in memory.
func compress(plain []byte, e kcdata.Envelope) (*spool, error) {
	out, err := newSpool("file")
	if err != nil {
		return nil, err
	}
	// Straight to the file: the zlib envelope seeks back to its sizes.
	if err := kcdata.Compress(out.file, plain, e); err != nil {
		out.close()
		return nil, fmt.Errorf("compress with %v: %w", e, err)
	}
	return out, nil
}
