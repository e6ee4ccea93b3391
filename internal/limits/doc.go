// Package limits says how much of what a machine has is left for this process:
// process ids, which threads take too, and memory. A capture asks before it needs
// them: the Go runtime ends the process when a thread cannot be made, and the
// kernel ends it when its control group's memory is used up.
//
// The nearest of several bounds counts: those of the control groups, of either version, up
// to the root that this process can see, and those of the user and the machine. A bound that
// cannot be read counts as none.
//
// Here, too, is what the process may do: its capabilities, and whether it may run at a
// real-time priority.
package limits

import (
	"fmt"
	"math"
)

// Room is what the nearest bound leaves.
type Room struct {
	Free int64  // process ids, or bytes; never below 0
	Max  int64  // the bound
	By   string // whose it is: "pids.max of /sys/fs/cgroup/a"
}

// unbounded is the room that no bound was found for.
var unbounded = Room{Free: math.MaxInt64, Max: math.MaxInt64}

// within is the room that a further bound leaves: the nearer of the two counts.
func (r Room) within(most, used int64, by string) Room {
	if free := max(most-used, 0); free < r.Free {
		return Room{free, most, by}
	}
	return r
}

// String names bound and value.
func (r Room) String() string { return fmt.Sprintf("%s is %d", r.By, r.Max) }

// Machine is where the bounds are read. The zero value is this machine.
type Machine struct {
	Root string // in place of /, for tests
}
