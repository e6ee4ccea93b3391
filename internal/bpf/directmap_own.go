package bpf

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// systemRAM reads the ranges of ordinary memory, ascending.
func systemRAM(file string) ([]RAMRange, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, &DirectMapError{"System RAM", err}
	}
	defer f.Close()
	list, err := parseRAM(f)
	if err != nil {
		return nil, &DirectMapError{"System RAM: " + file, err}
	}
	return largest(list), nil
}

// CountRAM says how many ranges of ordinary memory /proc/iomem has, and how many
// bytes lie in those beyond MaxRAM, which the programs do not know. Errors: of the
// text; its addresses may be hidden.
func CountRAM(iomem io.Reader) (ranges int, unknown uint64, err error) {
	list, err := parseRAM(iomem)
	if err != nil {
		return 0, 0, err
	}
	return len(list), sumRAM(list) - sumRAM(largest(slices.Clone(list))), nil
}

func sumRAM(list []RAMRange) (bytes uint64) {
	for _, r := range list {
		bytes += r.End - r.Start
	}
	return bytes
}

var (
	errNoRAM     = errors.New("no System RAM")
	errHidden    = errors.New("addresses are hidden (CAP_SYS_ADMIN)")
	errNoFrame   = errors.New("frame numbers are hidden (CAP_SYS_ADMIN)")
	errNotIn     = errors.New("the page is not in memory")
	errDisorder  = errors.New("ranges are not in order")
	ramName      = "System RAM"
	presentFlag  = uint64(1) << 63
	frameOfEntry = uint64(1)<<55 - 1
)

// parseRAM reads the lines "start-end : System RAM" that are no part of another.
func parseRAM(r io.Reader) ([]RAMRange, error) {
	var list []RAMRange
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		addrs, name, ok := strings.Cut(lines.Text(), " : ")
		if !ok || name != ramName || strings.HasPrefix(addrs, " ") {
			continue
		}
		var a RAMRange
		if _, err := fmt.Sscanf(addrs, "%x-%x", &a.Start, &a.End); err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		if a.End == 0 {
			return nil, errHidden
		}
		a.End++
		if n := len(list); a.End <= a.Start || n > 0 && a.Start < list[n-1].End {
			return nil, fmt.Errorf("%q: %w", lines.Text(), errDisorder)
		}
		list = append(list, a)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errNoRAM
	}
	return list, nil
}

// largest keeps as many ranges as the programs know.
func largest(list []RAMRange) []RAMRange {
	if len(list) <= MaxRAM {
		return list
	}
	slices.SortFunc(list, func(a, b RAMRange) int { return cmp.Compare(b.End-b.Start, a.End-a.Start) })
	list = list[:MaxRAM]
	slices.SortFunc(list, func(a, b RAMRange) int { return cmp.Compare(a.Start, b.Start) })
	return list
}

// pagemap returns a function that looks up the frame number of an address of this
// process in its pagemap.
func pagemap(file string) func(addr uint64) (uint64, error) {
	return func(addr uint64) (uint64, error) {
		f, err := os.Open(file)
		if err != nil {
			return 0, &DirectMapError{"page frames", err}
		}
		defer f.Close()
		var b [8]byte
		if _, err := f.ReadAt(b[:], int64(addr>>pageShift()*8)); err != nil {
			return 0, &DirectMapError{"page frames: " + file, err}
		}
		e := binary.LittleEndian.Uint64(b[:])
		switch {
		case e&presentFlag == 0:
			return 0, &DirectMapError{"page frames", errNotIn}
		case e&frameOfEntry == 0:
			return 0, &DirectMapError{"page frames", errNoFrame}
		}
		return e & frameOfEntry, nil
	}
}

// ownPages are pages of this process, locked, with a random word in each; and one
// with PROT_NONE.
type ownPages struct {
	mem    []byte
	list   []ownPage
	closed uint64
}

const ownCount = 4

func newOwnPages() (*ownPages, error) {
	size := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, (2*ownCount+1)*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, &DirectMapError{"pages of our own", err}
	}
	o := &ownPages{mem: mem}
	unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
	unix.Mlock(mem) // else the kernel may move a page, and no base matches
	for i := range 2*ownCount + 1 {
		at := mem[i*size+8*(i%64):]
		p := ownPage{uint64(uintptr(unsafe.Pointer(&at[0]))), rand.Uint64()}
		binary.NativeEndian.PutUint64(at, p.value)
		if i%2 == 1 {
			o.list = append(o.list, p)
		}
	}
	last := mem[2*ownCount*size:]
	o.closed = uint64(uintptr(unsafe.Pointer(&last[0])))
	if err := unix.Mprotect(last, unix.PROT_NONE); err != nil {
		return nil, errors.Join(&DirectMapError{"a page without rights", err}, o.free())
	}
	return o, nil
}

func (o *ownPages) free() error { return unix.Munmap(o.mem) }
