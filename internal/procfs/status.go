package procfs

import (
	"bytes"
	"math"
)

// Presence bits of ProcStatus.Present: which lines the file has.
const (
	StatusHasMemory  = 1 << 0 // Vm*: not for kernel threads and zombies
	StatusHasKthread = 1 << 1 // Kthread: since 6.8
)

// ProcStatus holds the lines in use of /proc/PID/status or /proc/PID/task/TID/status. A
// field whose line is not in the file is zero.
type ProcStatus struct {
	Present     uint32 // StatusHas*
	Tgid        int
	Pid         int // of the thread; never 0
	PPid        int
	UID, GID    [4]uint32 // real, effective, saved, file system
	Threads     int
	NSpid       []int // Pid in each pid namespace, from the reader's own to the innermost; since 4.1
	Kthread     bool  // a kernel thread
	CoreDumping bool  // since 4.15

	VmPeak, VmSize, VmLck, VmPin, VmHWM, VmRSS      uint64 // bytes
	RssAnon, RssFile, RssShmem                      uint64 // bytes; since 4.5
	VmData, VmStk, VmExe, VmLib, VmPTE, VmSwap      uint64 // bytes
	SigPnd, ShdPnd, SigBlk, SigCgt                  uint64 // bit n-1 for signal n
	VoluntaryCtxtSwitches, NonvoluntaryCtxtSwitches uint64
}

// statusLines says how each line in use is read: it stores a value, without the blanks
// around it, and reports whether the value has the right form.
var statusLines = map[string]func(st *ProcStatus, v []byte) bool{
	"Tgid":        func(st *ProcStatus, v []byte) bool { return setInt(&st.Tgid, v) },
	"Pid":         func(st *ProcStatus, v []byte) bool { return setInt(&st.Pid, v) },
	"PPid":        func(st *ProcStatus, v []byte) bool { return setInt(&st.PPid, v) },
	"Threads":     func(st *ProcStatus, v []byte) bool { return setInt(&st.Threads, v) },
	"Uid":         func(st *ProcStatus, v []byte) bool { return setIDs(&st.UID, v) },
	"Gid":         func(st *ProcStatus, v []byte) bool { return setIDs(&st.GID, v) },
	"NSpid":       func(st *ProcStatus, v []byte) bool { return setInts(&st.NSpid, v) },
	"Kthread":     func(st *ProcStatus, v []byte) bool { st.Present |= StatusHasKthread; return setBool(&st.Kthread, v) },
	"CoreDumping": func(st *ProcStatus, v []byte) bool { return setBool(&st.CoreDumping, v) },

	"VmPeak":   func(st *ProcStatus, v []byte) bool { return setKiB(&st.VmPeak, v) },
	"VmSize":   func(st *ProcStatus, v []byte) bool { st.Present |= StatusHasMemory; return setKiB(&st.VmSize, v) },
	"VmLck":    func(st *ProcStatus, v []byte) bool { return setKiB(&st.VmLck, v) },
	"VmPin":    func(st *ProcStatus, v []byte) bool { return setKiB(&st.VmPin, v) },
	"VmHWM":    func(st *ProcStatus, v []byte) bool { return setKiB(&st.VmHWM, v) },
	"VmRSS":    func(st *ProcStatus, v []byte) bool { return setKiB(&st.VmRSS, v) },
	"RssAnon":  func(st *ProcStatus, v []byte) bool { return setKiB(&st.RssAnon, v) },
	"RssFile":  func(st *ProcStatus, v []byte) bool { return setKiB(&st.RssFile, v) },
	"RssShmem": func(st *ProcStatus, v []byte) bool { return setKiB(&st.RssShmem, v) },
	"VmData":   func(st *ProcStatus, v []byte) bool { return setKiB(&st.VmData, v) },
	"VmStk":    func(st *ProcStatus, v []byte) bool { return setKiB(&st.VmStk, v) },
	"VmExe":    func(st *ProcStatus, v []byte) bool { return setKiB(&st.VmExe, v) },
	"VmLib":    func(st *ProcStatus, v []byte) bool { return setKiB(&st.VmLib, v) },
	"VmPTE":    func(st *ProcStatus, v []byte) bool { return setKiB(&st.VmPTE, v) },
	"VmSwap":   func(st *ProcStatus, v []byte) bool { return setKiB(&st.VmSwap, v) },

	"SigPnd": func(st *ProcStatus, v []byte) bool { return setHex(&st.SigPnd, v) },
	"ShdPnd": func(st *ProcStatus, v []byte) bool { return setHex(&st.ShdPnd, v) },
	"SigBlk": func(st *ProcStatus, v []byte) bool { return setHex(&st.SigBlk, v) },
	"SigCgt": func(st *ProcStatus, v []byte) bool { return setHex(&st.SigCgt, v) },

	"voluntary_ctxt_switches":    func(st *ProcStatus, v []byte) bool { return setUint(&st.VoluntaryCtxtSwitches, v) },
	"nonvoluntary_ctxt_switches": func(st *ProcStatus, v []byte) bool { return setUint(&st.NonvoluntaryCtxtSwitches, v) },
}

// ParseStatus reads a status file. It skips lines that it does not know; a known line
// of another form is an error, and so is a file without Pid.
func ParseStatus(b []byte) (ProcStatus, error) {
	var st ProcStatus
	if err := st.Parse(b); err != nil {
		return ProcStatus{}, err
	}
	return st, nil
}

// Parse is ParseStatus into a record that is used again: its slice keeps its
// memory. After an error the record is half filled.
func (st *ProcStatus) Parse(b []byte) error {
	*st = ProcStatus{NSpid: st.NSpid[:0]}
	for line := range bytes.Lines(b) {
		key, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return syntaxError("status", "line", line)
		}
		value = bytes.TrimSpace(value)
		if set := statusLines[string(key)]; set != nil && !set(st, value) { // the conversion allocates nothing
			return syntaxError("status", string(key), value)
		}
	}
	if st.Pid == 0 {
		return syntaxError("status", "Pid", nil)
	}
	return nil
}

func setUint(dst *uint64, v []byte) (ok bool) {
	*dst, ok = parseUint(v)
	return ok
}

func setHex(dst *uint64, v []byte) (ok bool) {
	*dst, ok = parseHex(v)
	return ok
}

func setInt(dst *int, v []byte) bool {
	n, ok := parseInt(v)
	*dst = int(n)
	return ok && n >= math.MinInt32 && n <= math.MaxInt32
}

func setBool(dst *bool, v []byte) bool {
	*dst = string(v) == "1"
	return *dst || string(v) == "0"
}

func setKiB(dst *uint64, v []byte) bool {
	digits, ok := bytes.CutSuffix(v, []byte(" kB"))
	n, isNumber := parseUint(digits)
	*dst = n << 10
	return ok && isNumber && n <= math.MaxUint64>>10
}

func setInts(dst *[]int, v []byte) bool {
	s := scanner{file: "status", rest: v}
	for s.more() {
		*dst = append(*dst, int(s.i32()))
	}
	return s.err == nil && len(*dst) > 0
}

func setIDs(dst *[4]uint32, v []byte) bool {
	s := scanner{file: "status", rest: v}
	for i := range dst {
		dst[i] = s.u32()
	}
	return s.err == nil && !s.more()
}
