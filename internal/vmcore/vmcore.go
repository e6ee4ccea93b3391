// Package vmcore reads dumps of a machine's memory by physical address: ELF64 cores (/proc/vmcore,
// makedumpfile -E, QEMU's dump-guest-memory, virsh dump) and the kdump-compressed files of makedumpfile
// and QEMU. It needs no symbols and little memory, however big a dump is or claims to be, and it trusts
// nothing that it reads.
//
// Sources: makedumpfile's IMPLEMENTATION and diskdump_mod.h for kdump-compressed files; the kernel's
// fs/proc/vmcore.c and kernel/vmcore_info.c, and elf(5), for ELF cores.
package vmcore

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

var (
	// ErrAbsent means memory that the machine had and the dump leaves out.
	ErrAbsent = errors.New("left out of the dump")
	// ErrOutside means an address at which the machine had no memory.
	ErrOutside = errors.New("no memory of the machine")
	// ErrDamaged means a file that contradicts itself, or ends early, or cannot be read.
	ErrDamaged = errors.New("damaged")
)

// RunSize is the most bytes that Pages hands out in one call.
const RunSize = 1 << 20

// maxPhys is the end of physical addresses: amd64 and arm64 have 52 bits of them at most.
const maxPhys = 1 << 52

// smallestPage is the smallest page of amd64 and arm64, in bytes.
const smallestPage = 4096

// A Core is a dump of a machine's memory. One goroutine at a time may use it.
type Core struct {
	file *os.File
	memory
	about
}

// memory is what the two formats do in their own ways.
type memory interface {
	// readPhys is Core.ReadPhys.
	readPhys(p []byte, pa uint64) error
	// pages is Core.Pages, with page bytes in a page.
	pages(page uint64, fn func(pa uint64, run []byte) error) (Tally, error)
}

// Tally is how a pass over all pages went, in pages of Core.PageSize.
type Tally struct {
	Pages   uint64 // handed out
	Absent  uint64 // the machine had them and the dump leaves them out, wholly or in part; 0 if the pass was ended early
	Damaged uint64 // should be in the file, and could not be read or unpacked
	First   error  // why the first damaged one could not; nil if none is damaged
}

// Open opens a dump and reads what it says of itself. The error names the file and the offset. A format that is
// not read but can be converted is refused with the command that converts it. The file must
// allow reads at any offset.
func Open(path string) (*Core, error) {
	// A FIFO would make a blocking open wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	size, err := fileSize(f)
	if err == nil {
		var c *Core
		if c, err = open(f, size, path); err == nil {
			c.file = f
			return c, nil
		}
	}
	f.Close()
	return nil, err
}

// fileSize is a file's or a block device's size in bytes.
func fileSize(f *os.File) (uint64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	switch {
	case st.Mode().IsRegular():
		return uint64(st.Size()), nil
	case st.Mode()&(os.ModeDevice|os.ModeCharDevice) == os.ModeDevice:
		n, err := f.Seek(0, io.SeekEnd)
		return uint64(max(n, 0)), err
	}
	return 0, fmt.Errorf("%s: not a file that can be read at any offset (%v)", f.Name(), st.Mode().Type())
}

// open reads the headers of a dump of size bytes; path names it in errors.
func open(r io.ReaderAt, size uint64, path string) (*Core, error) {
	s := &source{r: r, size: size, path: path}
	var magic [16]byte
	if err := s.read(magic[:min(16, size)], 0, "signature"); err != nil {
		return nil, err
	}
	switch {
	case string(magic[:4]) == "\x7fELF":
		return openELF(s)
	case string(magic[:8]) == "KDUMP   ":
		return openKdump(s)
	case string(magic[:12]) == "makedumpfile":
		return nil, fmt.Errorf("%s: in the flattened format; makedumpfile -R OUT < %s makes a file that can be read", path, path)
	case string(magic[:8]) == "DISKDUMP":
		return nil, fmt.Errorf("%s: a dump of diskdump, which is not read", path)
	}
	return nil, fmt.Errorf("%s: offset 0: neither an ELF core nor a kdump-compressed file", path)
}

// Close closes the file.
func (c *Core) Close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// ReadPhys reads len(p) bytes from physical address pa on. They may cross pages and segments.
// Errors: ErrAbsent, ErrOutside, ErrDamaged; p then holds anything.
func (c *Core) ReadPhys(p []byte, pa uint64) error { return c.readPhys(p, pa) }

// Pages calls fn with all pages that the dump holds, each once, by ascending address. A run is one page or
// several that follow each other, RunSize bytes at most; pa is the address of the first, and both are
// multiples of PageSize. The bytes are valid during the call only. Pages that are left out or damaged are skipped and
// counted. An error of fn ends the pass and is returned as it is.
func (c *Core) Pages(fn func(pa uint64, run []byte) error) (Tally, error) {
	return c.pages(uint64(c.PageSize()), fn)
}
