package main

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/limits"
)

const (
	hugePage  = 2 << 20 // bytes, where pages have 4 KiB
	leastHuge = 8 << 20 // bytes of heap for which it is not worth while
	spare     = 8       // times as much memory must be left
)

// hugeHeap has the next n bytes of the heap, about, backed by huge pages. A page fault costs
// from 0.3 µs to, in a virtual machine whose host keeps its page tables, 25 µs, and 20,000
// threads are as many pages of 4 KiB. Where nobody uses the bytes they take no memory.
//
// Go has no word for this. So hugeHeap allocates the bytes, which touches none of them, advises
// the kernel, and gives them back: the runtime allocates at the lowest free address. Where
// memory is scarce the kernel would have to make room for huge pages first, so all stays as it
// is, and hugeHeap gives false.
func hugeHeap(n int64) bool {
	if n < leastHuge || (limits.Machine{}).Memory().Free < spare*n || limited(unix.RLIMIT_AS) || limited(unix.RLIMIT_DATA) {
		return false
	}
	b := make([]byte, n)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % hugePage
	unix.Madvise(b[skip:uintptr(n)&^(hugePage-1)-hugePage+skip], unix.MADV_HUGEPAGE) // refused: the kernel has none
	b = nil
	runtime.GC()
	return true
}

// limited reports whether this process has a bound to its address space, which the bytes would count for.
func limited(resource int) bool {
	var r unix.Rlimit
	return unix.Getrlimit(resource, &r) != nil || r.Cur != unix.RLIM_INFINITY
}
