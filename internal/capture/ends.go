package capture

import "stackshot/kcdata"

// Ends is what was read after the release of what threads wait at: who has the other ends of
// their files, locks of files, mounts, block devices, unanswered requests of FUSE.
type Ends struct {
	Taken   kcdata.LinuxFilesTaken // the part that is not of the window
	Ends    []kcdata.LinuxEnd
	Locks   []kcdata.LinuxFileLock
	Mounts  []kcdata.LinuxMount
	Devices []kcdata.LinuxDevice
	FUSE    []kcdata.LinuxFUSE
	Waiters map[WaiterID]Waiter // threads with open files, as they were then; absent: not looked at
}

// WaiterID is a thread of the capture.
type WaiterID struct {
	Tid   uint32
	Start uint64 // start_boottime, ns
}

// Waiter is what became of a thread that waits.
type Waiter struct {
	Still   bool // it had not run since the window
	Catches bool // its process has a handler for signals
}
