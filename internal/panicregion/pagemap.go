package panicregion

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// ErrNoFrames says that this process may not see frame numbers.
var ErrNoFrames = errors.New("frame numbers are hidden: nobody could find the region in a dump (needs CAP_SYS_ADMIN)")

// Frames are the physical addresses of mapped memory, one for each page of 4 KiB. Pages of the
// machine that are larger are split. The memory is a BPF map's: the kernel neither moves it nor
// swaps it out, so they stay. Errors: ErrNoFrames; a page is not in memory.
func Frames(mem []byte) ([]uint64, error) {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := os.Getpagesize()
	n := (len(mem) + size - 1) / size
	entries := make([]byte, 8*n)
	at := int64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) / int64(size) * 8
	if _, err := f.ReadAt(entries, at); err != nil {
		return nil, fmt.Errorf("/proc/self/pagemap: %w", err)
	}
	return splitFrames(entries, size, len(mem)/PageSize)
}

// Of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const (
	present   = uint64(1) << 63
	frameMask = uint64(1)<<55 - 1
)

// splitFrames turns entries of pages of so many bytes into the addresses of the first pages of 4 KiB.
func splitFrames(entries []byte, size, pages int) ([]uint64, error) {
	out := make([]uint64, 0, pages)
	for i := range len(entries) / 8 {
		e := binary.LittleEndian.Uint64(entries[8*i:])
		if e&present == 0 {
			return nil, fmt.Errorf("page %d of the region is not in memory", i)
		}
		if e&frameMask == 0 {
			return nil, ErrNoFrames
		}
		for at := uint64(0); at < uint64(size) && len(out) < pages; at += PageSize {
			out = append(out, e&frameMask*uint64(size)+at)
		}
	}
	if len(out) < pages {
		return nil, fmt.Errorf("%d frames for %d pages of the region", len(out), pages)
	}
	return out, nil
}
