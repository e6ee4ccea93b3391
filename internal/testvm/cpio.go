package testvm

import (
	"fmt"
	"io"
)

// archive writes a cpio of the newc format, as the kernel unpacks it into its
// first root file system (Documentation/driver-api/early-userspace/buffer-format.rst):
// entries of 13 hexadecimal fields, a name and data, each padded to 4 bytes.
// Directories must come before what is in them. The first error sticks.
type archive struct {
	w     io.Writer
	inode int
	dirs  map[string]bool // written already
	err   error
}

// File types of the mode field.
const (
	modeDir     = 0o040000
	modeChar    = 0o020000
	modeRegular = 0o100000
	modeLink    = 0o120000
)

func newArchive(w io.Writer) *archive { return &archive{w: w, dirs: map[string]bool{}} }

var zeros [4]byte

// entry is one header with name and data. Names are relative to the root.
func (a *archive) entry(name string, mode uint32, data []byte, major, minor int) {
	if a.err != nil {
		return
	}
	a.inode++
	head := "070701"
	for _, v := range []int{a.inode, int(mode), 0, 0, 1, 0, len(data), 0, 0, major, minor, len(name) + 1, 0} {
		head += fmt.Sprintf("%08x", v)
	}
	head += name + "\x00"
	a.write([]byte(head))
	a.write(zeros[:pad4(len(head))])
	a.write(data)
	a.write(zeros[:pad4(len(data))])
}

func pad4(n int) int { return -n & 3 }

func (a *archive) write(b []byte) {
	if a.err == nil {
		_, a.err = a.w.Write(b)
	}
}

// dir makes a directory and those above it, each once.
func (a *archive) dir(name string) {
	for i := 1; i <= len(name); i++ {
		if (i == len(name) || name[i] == '/') && !a.dirs[name[:i]] {
			a.dirs[name[:i]] = true
			a.entry(name[:i], modeDir|0o755, nil, 0, 0)
		}
	}
}

// parents makes the directories above name.
func (a *archive) parents(name string) {
	for i := len(name) - 1; i > 0; i-- {
		if name[i] == '/' {
			a.dir(name[:i])
			return
		}
	}
}

func (a *archive) file(name string, perm uint32, data []byte) {
	a.parents(name)
	a.entry(name, modeRegular|perm, data, 0, 0)
}

func (a *archive) link(name, target string) {
	a.parents(name)
	a.entry(name, modeLink|0o777, []byte(target), 0, 0)
}

func (a *archive) device(name string, perm uint32, major, minor int) {
	a.parents(name)
	a.entry(name, modeChar|perm, nil, major, minor)
}

// close ends the archive; nothing may follow.
func (a *archive) close() error {
	a.entry("TRAILER!!!", 0, nil, 0, 0)
	return a.err
}
