package publish

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

// Spool holds bytes in a memory file: they grow without being copied, do not count for the Go
// heap, and can be handed as an open file to the helper process that writes the target.
type Spool struct {
	file *os.File
	buf  *bufio.Writer
	mem  []byte // the file, mapped; nil before Bytes
}

// NewSpool makes an empty one; its name shows in /proc.
func NewSpool(name string) (*Spool, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory file for the %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	return &Spool{file: f, buf: bufio.NewWriterSize(f, 256<<10)}, nil
}

// NewSpoolIn makes an empty one that is a file without a name in a directory, for what may be too
// large for memory.
func NewSpoolIn(dir string) (*Spool, error) {
	f, err := unnamedFile(dir)
	if err != nil {
		return nil, fmt.Errorf("file for what is being made, in %s: %w", dir, err)
	}
	return &Spool{file: f, buf: bufio.NewWriterSize(f, 256<<10)}, nil
}

func unnamedFile(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), dir), nil
	}
	f, err := os.CreateTemp(dir, ".stackshot-*.tmp") // a file system without O_TMPFILE
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// Write appends.
func (s *Spool) Write(b []byte) (int, error) { return s.buf.Write(b) }

// Bytes maps what was written. It is called once, after the last Write.
func (s *Spool) Bytes() ([]byte, error) {
	n, err := s.Size()
	if err != nil || n == 0 {
		return nil, err
	}
	s.mem, err = unix.Mmap(int(s.file.Fd()), 0, int(n), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of the snapshot: %w", n, err)
	}
	return s.mem, nil
}

// Size is in bytes. It flushes what Write has buffered.
func (s *Spool) Size() (int64, error) {
	if err := s.buf.Flush(); err != nil {
		return 0, err
	}
	st, err := s.file.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// Close frees the memory, also that of Bytes.
func (s *Spool) Close() {
	if s.mem != nil {
		unix.Munmap(s.mem)
	}
	s.file.Close()
}

// Copy gives a file's bytes as they are, in memory.
func Copy(data []byte) (*Spool, error) {
	out, err := NewSpool("file")
	if err != nil {
		return nil, err
	}
	if _, err := out.Write(data); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// Compress gives plain in the envelope e, in memory: the bytes of its file.
func Compress(plain []byte, e kcdata.Envelope) (*Spool, error) {
	out, err := NewSpool("file")
	if err != nil {
		return nil, err
	}
	// Straight to the file: the zlib envelope seeks back to its sizes.
	if err := kcdata.Compress(out.file, plain, e); err != nil {
		out.Close()
		return nil, fmt.Errorf("compress with %v: %w", e, err)
	}
	return out, nil
}

// Raw is the file itself, for a writer that seeks back. Nothing may be written through Write beside it.
func (s *Spool) Raw() io.WriteSeeker { return s.file }
