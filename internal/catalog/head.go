package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Host and time stand in the first 16 KiB of a file, behind the definitions of types, of which
// there will be more. A block of zstd has at most 128 KiB.
const (
	packedHead = 160 << 10
	plainHead  = 64 << 10
)

// errOther is of what is no regular file.
var errOther = errors.New("no regular file")

// fewBytes tell an envelope, or a coding around it.
const fewBytes = 8

// readHead reads how a regular file begins: a few bytes, and more if these are a snapshot's. It
// follows links, and opens nothing else: a FIFO would wait for its writer.
func readHead(path string) ([]byte, error) {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil, errOther // or it is gone
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, show.WithoutPath(err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errOther // it was another file a moment ago
	}
	head := make([]byte, fewBytes, 4096)
	n, err := io.ReadFull(f, head)
	if err == nil && begins(head) {
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(f, packedHead))
		return append(head, rest...), show.WithoutPath(err)
	}
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, show.WithoutPath(err)
	}
	return head[:n], nil
}

// begins reports whether a few bytes are the beginning of an envelope or of a coding.
func begins(head []byte) bool {
	_, _, err := kcdata.Unwrap(head, plainHead)
	return !errors.Is(err, kcdata.ErrBadMagic)
}

// fill reads host and time. An error is errNot, or says why a snapshot cannot be read.
func (f *File) fill(head []byte) error {
	if len(head) == 0 {
		return fmt.Errorf("%w: the file is empty", errNot)
	}
	file, bad := kcdata.Read(bytes.NewReader(head), int64(len(head)), plainHead)
	plain := file.Plain
	switch anybody := file.Envelope == kcdata.EnvelopeZstd || file.Codings != nil; {
	case len(head) <= 4 || errors.Is(bad, kcdata.ErrBadMagic):
		return errNot
	case plain == nil && anybody:
		return fmt.Errorf("%w: %w", errNot, bad)
	case plain == nil:
		return bad
	}
	in, _ := kcdata.FindStackshot(plain, int64(len(head)), 4<<20) // which may be nested with its envelope
	if in.Plain == nil {
		return errNot
	}
	s, _ := kcdata.ParseSnapshotWithin(in.Plain, kcdata.Memory(packedHead)) // which breaks off, of course
	if s != nil {
		f.Host, f.Taken = s.Hostname, s.Machine.RealtimeNs
	}
	return nil
}
