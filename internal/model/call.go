package model

import (
	"stackshot/internal/sysno"
	"stackshot/kcdata"
)

// CallABI says of which table the number of a thread's system call is. A 32-bit thread uses
// only the compat table; a 64-bit thread may use that too.
func CallABI(t *kcdata.Thread) sysno.ABI {
	switch {
	case t.Linux.Present&kcdata.ThreadCompatCall != 0, t.UserWalk != nil && t.UserWalk.Flags&kcdata.UserCompat != 0:
		return sysno.Compat
	case t.Linux.Present&kcdata.ThreadCallUnsure != 0:
		return sysno.Unknown
	}
	return sysno.Native
}
