package lockfile

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Queue is a way to a file's lock by order of arrival. The lock is that of byte 0. Who comes locks
// the first byte behind all that are locked: its place, which others know it by. Both are
// open-file-description locks, so nobody who has died is waited for, and both keep out who locks
// the whole file (Lock), and are kept out by it.
type Queue struct {
	File  *os.File
	place int64     // 0: none yet
	free  time.Time // since when the lock was free whenever it was not our turn; zero: it was not
}

// Absent is how long the lock is free before those who do not take it in their turn are passed: they
// ask far more often, so they are stopped, or frozen.
const Absent = time.Second

// firstPlace is not 1, so that a length of 0, which is all the file, is never what is before it.
const firstPlace = 2

// Lock takes the lock and leaves the queue; inTurn: only if nobody was there before, or those who were
// are absent. It waits for nobody: who has not got the lock keeps the place, and asks again. Errors: ErrHeld.
func (q *Queue) Lock(inTurn bool) error {
	if q.place == 0 {
		if err := q.arrive(); err != nil {
			return err
		}
	}
	if inTurn {
		before, err := q.held(1, q.place-1)
		switch {
		case err != nil:
			return err
		case before.Type != unix.F_UNLCK && !q.absent():
			return ErrHeld
		}
	}
	if err := lock(q.File, unix.F_WRLCK, 0, 1); err != nil {
		return err
	}
	return lock(q.File, unix.F_UNLCK, 1, 0)
}

// absent reports whether nobody has taken the lock for so long that those before us will not.
func (q *Queue) absent() bool {
	if by, err := q.held(0, 1); err != nil || by.Type != unix.F_UNLCK {
		q.free = time.Time{}
		return false
	}
	if q.free.IsZero() {
		q.free = time.Now()
	}
	return time.Since(q.free) >= Absent
}

// arrive takes a place. Errors: ErrHeld, if somebody has the whole file.
func (q *Queue) arrive() error {
	for at := int64(firstPlace); ; {
		by, err := q.held(at, 0)
		switch {
		case err != nil:
			return err
		case by.Type == unix.F_UNLCK:
			if err = lock(q.File, unix.F_WRLCK, at, 1); err == nil {
				q.place = at
			}
			if !errors.Is(err, ErrHeld) {
				return err
			}
			at++ // somebody came meanwhile
		case by.Len == 0:
			return ErrHeld
		default:
			at = by.Start + by.Len
		}
	}
}

// held is a lock that somebody else has in the range, of all there may be; its type is F_UNLCK if
// there is none. A length of 0 means all from start on.
func (q *Queue) held(start, length int64) (unix.Flock_t, error) {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: start, Len: length}
	if err := unix.FcntlFlock(q.File.Fd(), unix.F_OFD_GETLK, &l); err != nil {
		return l, fmt.Errorf("lock %s: %w", q.File.Name(), err)
	}
	return l, nil
}
