//go:build linux && (amd64 || arm64)

package testtask

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A slot is one actor's line on the board. All fields are plain words because
// the actors, which run without the Go runtime, write them.
type slot struct {
	pid   int32 // written by the kernel (CLONE_PARENT_SETTID) when the actor is made
	step  int32 // written by the actor: the step it is in, from 1
	errno int32 // written by the actor: why that step failed
	last  int32 // written by the stage before the actor is made: the step in which it is what it claims
}

// boardHead is shared by all actors of a fixture.
type boardHead struct {
	start   uint32    // futex, written by the test process: the second phase may begin
	stop    uint32    // written by the test process: a storm shall end
	procs   [8]uint64 // written by storm worker i: processes made and reaped
	threads [8]uint64 // written by storm worker i: threads made
}

// A board is memory that the test process, the stage and all actors share:
// a head, then one slot per actor.
type board struct {
	file  *os.File
	mem   []byte
	head  *boardHead
	slots []slot
}

const headSize = int(unsafe.Sizeof(boardHead{}))

func boardSize(slots int) int { return headSize + slots*int(unsafe.Sizeof(slot{})) }

func newBoard(slots int) (*board, error) {
	fd, err := unix.MemfdCreate("testtask-board", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("testtask: memfd_create: %w", err)
	}
	file := os.NewFile(uintptr(fd), "testtask-board")
	if err := file.Truncate(int64(boardSize(slots))); err != nil {
		file.Close()
		return nil, fmt.Errorf("testtask: board of %d slots: %w", slots, err)
	}
	return openBoard(file, slots)
}

// openBoard maps a board and owns its file from then on.
func openBoard(file *os.File, slots int) (*board, error) {
	mem, err := unix.Mmap(int(file.Fd()), 0, boardSize(slots), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("testtask: map board of %d slots: %w", slots, err)
	}
	b := &board{file: file, mem: mem, head: (*boardHead)(unsafe.Pointer(&mem[0]))}
	if slots > 0 {
		b.slots = unsafe.Slice((*slot)(unsafe.Pointer(&mem[headSize])), slots)
	}
	return b, nil
}

// begin lets the actors of the second phase go on.
func (b *board) begin() {
	atomic.StoreUint32(&b.head.start, 1)
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.head.start)), futexWake, 1<<30, 0, 0, 0)
}

func (b *board) close() {
	unix.Munmap(b.mem)
	b.file.Close()
}
