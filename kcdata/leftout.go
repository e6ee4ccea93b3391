package kcdata

// leftOutReasons follows the LeftOut* constants in linux.go; a test holds the two
// against each other.
var leftOutReasons = [...]string{
	LeftOutMaxPause: "max_pause",
	LeftOutNoSpace:  "no_space",
	LeftOutError:    "error",
	LeftOutVanished: "vanished",
}

// LeftOutTasks counts the tasks of a list, in which one may stand more than once.
func LeftOutTasks(list []LinuxLeftOut) int {
	tasks := map[uint32]bool{}
	for _, l := range list {
		tasks[l.Tgid] = true
	}
	return len(tasks)
}

// LeftOutReason is the stable word for a LeftOut* constant, "unknown" for a code
// that this program does not know.
func LeftOutReason(code uint32) string {
	if code == 0 || uint64(code) >= uint64(len(leftOutReasons)) {
		return "unknown"
	}
	return leftOutReasons[code]
}
