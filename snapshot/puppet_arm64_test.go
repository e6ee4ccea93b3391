package snapshot

import "golang.org/x/sys/unix"

const frameAlign = 16

const ntPRStatus = 1

// setStack moves the pointers of a thread that is stopped by ptrace.
func setStack(tid int, sp, fp uint64) error {
	var r unix.PtraceRegsArm64
	if err := unix.PtraceGetRegSetArm64(tid, ntPRStatus, &r); err != nil {
		return err
	}
	r.Sp, r.Regs[29] = sp, fp
	return unix.PtraceSetRegSetArm64(tid, ntPRStatus, &r)
}
