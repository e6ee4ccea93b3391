package snapshot

import "golang.org/x/sys/unix"

const frameAlign = 8

// setStack moves the pointers of a thread that is stopped by ptrace, as if it had
// been in user mode.
func setStack(tid int, sp, fp uint64) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &r); err != nil {
		return err
	}
	r.Rsp, r.Rbp, r.Orig_rax = sp, fp, ^uint64(0)
	return unix.PtraceSetRegs(tid, &r)
}
