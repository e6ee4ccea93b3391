package bpf

import (
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Scope says what an iterator visits (union bpf_iter_link_info,
// include/uapi/linux/bpf.h). The zero Scope visits every task.
type Scope struct {
	info [3]uint32
	size uint32
}

// TaskScope visits the threads of one thread group, leader first; tgid counts
// in the caller's pid namespace. The pid form of the link info came with "bpf:
// Parameterize task iterators" (f0d74c4da1f0, in 6.1).
func TaskScope(tgid uint32) Scope { return Scope{info: [3]uint32{0, tgid, 0}, size: 12} }

// ThreadScope visits one thread.
func ThreadScope(tid uint32) Scope { return Scope{info: [3]uint32{tid, 0, 0}, size: 12} }

// Iterator is one pass over a scope: a link, and the file from which the pass is read.
type Iterator struct{ link, file int32 }

type linkCreate struct {
	progFd, targetFd, attachType, flags uint32
	info                                uint64
	infoLen                             uint32
	_                                   [36]byte
}

type iterCreate struct{ linkFd, flags uint32 }

// Open makes an iterator. It neither allocates nor yields: workers call it in
// the window. prog is the program's file descriptor. cilium's link.AttachIter
// cannot pass a scope of one task, hence the raw calls.
//
//go:nosplit
func (it *Iterator) Open(prog int, scope *Scope) unix.Errno {
	lc := linkCreate{progFd: uint32(prog), attachType: uint32(ebpf.AttachTraceIter)}
	if scope.size > 0 {
		lc.info, lc.infoLen = uint64(uintptr(unsafe.Pointer(&scope.info))), scope.size
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(&lc)), unsafe.Sizeof(lc))
	runtime.KeepAlive(scope)
	if errno != 0 {
		return errno
	}
	ic := iterCreate{linkFd: uint32(fd)}
	file, _, errno := unix.RawSyscall(unix.SYS_BPF, unix.BPF_ITER_CREATE, uintptr(unsafe.Pointer(&ic)), unsafe.Sizeof(ic))
	if errno != 0 {
		closeFD(int32(fd))
		return errno
	}
	it.link, it.file = int32(fd), int32(file)
	return 0
}

// Read takes the next bytes; 0 at the end. It may be called in the window.
//
//go:nosplit
func (it *Iterator) Read(buf []byte) (int, unix.Errno) {
	if len(buf) == 0 {
		return 0, unix.ENOBUFS
	}
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(it.file), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// Close ends the pass.
//
//go:nosplit
func (it *Iterator) Close() {
	closeFD(it.file)
	closeFD(it.link)
}

//go:nosplit
func closeFD(fd int32) { unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }
