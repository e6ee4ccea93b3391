//go:build linux

package userlab

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"stackshot/internal/testtask"
)

// A Stalled is a process that waits in the kernel, until Release, for a file
// that is not served.
type Stalled struct {
	*Process
	FS *StalledFS
	// Stack are the functions of the first thread's user stack, innermost first,
	// the C library's wrapper of the system call left out. nil: there is none
	// that means anything.
	Stack []string
	// Beside are those of the second thread, if there is one.
	Beside []string
}

// Release lets the process go on.
func (s *Stalled) Release() { s.FS.Release() }

// LockedMap is a process that holds its mmap_lock for writing, in state D, until
// Release: /proc/PID/maps and cmdline do not answer. Its second thread sleeps in
// read(2).
//
// The first is in mmap(2) of a FUSE file that is opened FOPEN_DIRECT_IO.
// fuse_file_mmap gives up the file's cached pages first, and waits for the lock
// of one that another process is reading for ever. It maps over pages that it
// has, so that their VMAs are locked too: since 6.17 maps is read under those
// locks alone where it can be. gdb cannot attach to it, nor can it be stopped.
//
// Userfaultfd does not do: munmap, mremap, fork and MADV_DONTNEED wait for its
// events after they have let the lock go, and a fault in mlock lets it go too
// (tried on 6.18: state D, but maps is read).
func LockedMap(tb testing.TB) *Stalled {
	tb.Helper()
	bin := newBuilder(tb).program(mapperProgram)
	fs := NewStalledFS(tb, StalledFile{Name: "never", Data: make([]byte, 1<<16), Mode: 0o644, Direct: true})
	reader := run(tb, launch{name: "page reader", argv: []string{bin, "touch", fs.Path("never")}, any: true})
	reader.release = append(reader.release, fs.Release)
	if err := testtask.WaitFor(readyTime, func() (bool, error) { return fs.Stalls("never"), nil }); err != nil {
		tb.Fatalf("userlab: nobody reads the stalled file: %v", err)
	}
	p := run(tb, launch{name: "locked map", argv: []string{bin, "hold", fs.Path("never")}, any: true, threads: 2})
	p.release = append(p.release, fs.Release)
	awaitKernel(p, 'D', "fuse_file_mmap", "do_mmap")
	return &Stalled{Process: p, FS: fs,
		Stack:  []string{"hold_lock", "deeper", "deeper", "deeper", "deeper", "main"},
		Beside: []string{"hold_beside"}}
}

// SlowExec is a process in execve(2) of a file that is not served: before the
// point of no return, with all that it had.
func SlowExec(tb testing.TB) *Stalled {
	tb.Helper()
	s := slowExec(tb, StalledFile{Name: "image", Data: make([]byte, 1<<16), Mode: 0o755}, "__kernel_read")
	s.Stack = []string{"exec_image", "deeper", "deeper", "deeper", "deeper", "main"}
	return s
}

// LateExec is a process in execve(2) past the point of no return: the memory is
// the new program's, which has not begun, and the saved user registers still
// are those of the old. Any user stack of it is wrong.
func LateExec(tb testing.TB) *Stalled {
	tb.Helper()
	out := newBuilder(tb).program(lateProgram)
	data, err := os.ReadFile(out)
	if err != nil {
		tb.Fatal(err)
	}
	return slowExec(tb, StalledFile{Name: "image", Data: data, Mode: 0o755, From: 1 << 19}, "load_elf_binary", "filemap_fault")
}

func slowExec(tb testing.TB, file StalledFile, kernel ...string) *Stalled {
	tb.Helper()
	bin := newBuilder(tb).program(mapperProgram)
	fs := NewStalledFS(tb, file)
	p := run(tb, launch{name: "slow exec", argv: []string{bin, "exec", fs.Path(file.Name)}, any: true})
	p.release = append(p.release, fs.Release)
	awaitKernel(p, 0, kernel...)
	if err := testtask.WaitFor(readyTime, func() (bool, error) { return fs.Stalls(file.Name), nil }); err != nil {
		tb.Fatalf("userlab: exec does not wait for %s: %v", file.Name, err)
	}
	return &Stalled{Process: p, FS: fs}
}

// awaitKernel waits until the first thread has these functions on its kernel
// stack, and is in this state, if one is named.
func awaitKernel(p *Process, state byte, functions ...string) {
	p.tb.Helper()
	var stack []string
	var now byte
	err := testtask.WaitFor(endTime, func() (bool, error) {
		var err error
		if now, err = stateOf(fmt.Sprintf("/proc/%d", p.Pid)); err != nil {
			return false, err
		}
		if stack, err = kernelStack(p.Pid, p.Pid); err != nil {
			return false, err
		}
		has := func(f string) bool { return slices.Contains(stack, f) }
		return (state == 0 || now == state) && !slices.ContainsFunc(functions, func(f string) bool { return !has(f) }), nil
	})
	if err != nil {
		p.tb.Fatalf("userlab: %s (pid %d): %v: state %c, kernel stack %v, want %v\n%s", p.Name, p.Pid, err, now, stack, functions, p.Log())
	}
}
