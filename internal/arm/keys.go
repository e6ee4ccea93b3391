package arm

// DefaultKey is free in the kernel's table on amd64 and arm64, needs no shift, and does no
// harm where nothing is armed: the kernel then prints its help.
const DefaultKey = 'y'

// kernelKeys are what the kernel's own keys do (drivers/tty/sysrq.c, sysrq_key_table, of 6.1 to
// 7.3, and what registers itself there: sched_ext's S and D).
var kernelKeys = map[byte]string{
	'b': "reboots", 'c': "crashes the machine", 'd': "shows locks", 'e': "ends all processes",
	'f': "calls the OOM killer", 'g': "enters kgdb", 'h': "shows the help", 'i': "kills all processes",
	'j': "thaws file systems", 'k': "kills what runs on the console", 'l': "shows the stacks of active CPUs",
	'm': "shows memory", 'n': "makes real-time tasks ordinary", 'o': "powers off", 'p': "shows registers",
	'q': "shows timers", 'r': "takes the keyboard out of raw mode", 's': "syncs file systems",
	't': "shows tasks", 'u': "remounts file systems read-only", 'v': "restores the screen",
	'w': "shows blocked tasks", 'x': "is xmon's, or shows other registers", 'z': "dumps the trace buffer",
	'D': "dumps sched_ext", 'R': "replays the log", 'S': "turns sched_ext off",
}

// KernelKey says why a SysRq key cannot be ours; "": it can.
func KernelKey(key byte) string {
	switch {
	case key >= '0' && key <= '9':
		return "the kernel has this key: it sets the console's log level; want a letter that is free, such as y"
	case key < 'A' || key > 'Z' && key < 'a' || key > 'z':
		return "the kernel looks at digits and letters only; want a letter that is free, such as y"
	case kernelKeys[key] != "":
		return "the kernel has this key: it " + kernelKeys[key] + "; want a letter that is free, such as y"
	}
	return ""
}

// dumps is the bit of kernel.sysrq that lets dumps of processes through (SYSRQ_ENABLE_DUMP).
const dumps = 8

// LetsThrough says whether a value of kernel.sysrq lets our key through when it comes from a
// keyboard or a serial line. A write to /proc/sysrq-trigger is not asked for it.
func LetsThrough(mask int) bool { return mask == 1 || mask&dumps != 0 }
