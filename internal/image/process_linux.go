package image

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
	"stackshot/internal/timens"
)

// Alive says why the pid does not name the process of the capture any more. stat
// of a process takes none of the locks that a hung one holds.
func (p Process) Alive() error {
	switch {
	case p.Proc == "":
		return errElsewhere
	case p.byNumber:
		return nil
	case p.Start == 0:
		return errNoStart
	}
	b, err := os.ReadFile(p.Path("stat"))
	if procfs.Gone(err) {
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	if err != nil {
		return err
	}
	st, err := procfs.ParseStat(b)
	if err != nil {
		return err
	}
	if !st.StartedAt(p.Start) {
		return errAnother
	}
	return nil
}

// started is when the process began, in ns since the epoch, 0 where that is not
// known.
func (p Process) started() int64 {
	var boot unix.Timespec
	if p.Proc == "" || p.Start == 0 || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0
	}
	return time.Now().UnixNano() - (boot.Nano() - timens.Boottime) + int64(p.Start)
}
