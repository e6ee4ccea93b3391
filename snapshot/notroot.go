package snapshot

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

// warnNotRoot says in one line to an ordinary user what the many refusals come from, and
// what helps. The refusals themselves stay warnings: they are of use to whoever lacks a
// single right.
func (s *Session) warnNotRoot(why error) {
	if os.Geteuid() != 0 && errors.Is(why, unix.EPERM) {
		s.warn(kcdata.WarningNotRoot, "`sudo stackshot` stops the machine and sees everybody's stacks; without it this is what /proc shows")
	}
}
