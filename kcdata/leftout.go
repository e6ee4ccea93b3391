package kcdata

// leftOutReasons has a word for each LeftOut* constant of linux.go; a test checks that.
var leftOutReasons = [...]string{
	LeftOutMaxPause: "max_pause",
	LeftOutNoSpace:  "no_space",
	LeftOutError:    "error",
	LeftOutVanished: "vanished",
	LeftOutPanic:    "panic",
}

// LeftOutTasks counts the tasks of a list in which one task may stand more than once.
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
