package snapshot

import (
	"errors"
	"fmt"
	"os"
)

// ErrNoProc says that there is no /proc, or one of a pid namespace without us.
var ErrNoProc = errors.New("no /proc to read")

// Of a task that /proc does not have.
const (
	wentAway   = "ended before it was read"
	maybeThere = "not in /proc: hidden, or ended before it was read"
)

// checkProc says whether /proc has the tasks of others. Mounted with hidepid=2 it has
// none for whoever may not trace them: the first task is root's.
func (s *Session) checkProc() error {
	if _, err := os.Readlink("/proc/self"); err != nil {
		return fmt.Errorf("%w: %w", ErrNoProc, err)
	}
	s.absent = wentAway
	if _, err := s.machine.Stat(1); err != nil {
		s.absent = maybeThere
		s.warn("tasks_hidden", fmt.Sprintf("/proc does not show tasks of other users, so of them is missing what only /proc knows, and with engine procfs all: %v (mount option hidepid, needs CAP_SYS_PTRACE)", err))
	}
	return nil
}
