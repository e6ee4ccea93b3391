package snapshot

import (
	"errors"
	"fmt"
	"os"
	"strconv"
)

// ErrNoProc says that there is no /proc, or one of another pid namespace, where tasks have
// other numbers than here.
var ErrNoProc = errors.New("no /proc to read")

// Why /proc does not have a task.
const (
	wentAway   = "ended before it was read"
	maybeThere = "not in /proc: hidden, or ended before it was read"
)

// checkProc says whether /proc has the tasks of others. Mounted with hidepid=2 it has
// none for whoever may not trace them: the first task is root's.
func (s *Session) checkProc() error {
	switch self, err := os.Readlink("/proc/self"); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNoProc, err)
	case self != strconv.Itoa(os.Getpid()): // as unshare --pid leaves it: what BPF and /proc say could not be joined
		return fmt.Errorf("%w: it is of another pid namespace, in which this process is %s (mount -t proc proc /proc)", ErrNoProc, self)
	}
	s.absent = wentAway
	if _, err := s.machine.Stat(1); err != nil {
		s.absent = maybeThere
		s.warn("tasks_hidden", fmt.Sprintf("/proc does not show tasks of other users, so of them is missing what only /proc knows, and with engine procfs all: %v (mount option hidepid, needs CAP_SYS_PTRACE)", err))
	}
	return nil
}
