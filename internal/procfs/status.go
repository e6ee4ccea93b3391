package procfs

import (
	"bytes"
	"math"
)

// Presence bits of ProcStatus.Present: groups of lines that were there.
const (
	StatusHasMemory   = 1 << 0 // Vm*, Rss*: absent without user space and for zombies
	StatusHasNS       = 1 << 1 // NStgid, NSpid: since 4.1
	StatusHasSignals  = 1 << 2 // SigPnd … SigCgt
	StatusHasSwitches = 1 << 3 // the two ctxt_switches lines
	StatusHasKthread  = 1 << 4 // Kthread: since 6.8
	StatusHasPin      = 1 << 5 // VmPin
	StatusHasRssKinds = 1 << 6 // RssAnon, RssFile, RssShmem: since 4.5
	StatusHasCoreDump = 1 << 7 // CoreDumping: since 4.15
	StatusHasCPUs     = 1 << 8 // Cpus_allowed_list
)

// ProcStatus is /proc/PID/status or /proc/PID/task/TID/status. A field whose
// group is not in Present was not in the file, and is zero.
type ProcStatus struct {
	Present   uint32
	Name      string // with the kernel's escapes of '\n' and '\\' undone
	State     byte
	Tgid      int
	Pid       int // of the thread
	PPid      int
	TracerPid int
	UID, GID  [4]uint32 // real, effective, saved, file system
	Threads   int
	// Numbers in each pid namespace, from the reader's own to the innermost.
	NStgid, NSpid []int
	Kthread       bool
	CoreDumping   bool

	// Bytes.
	VmPeak, VmSize, VmLck, VmPin, VmHWM, VmRSS      uint64
	RssAnon, RssFile, RssShmem                      uint64
	VmData, VmStk, VmExe, VmLib, VmPTE, VmSwap      uint64
	SigPnd, ShdPnd, SigBlk, SigIgn, SigCgt          uint64 // bit n-1 for signal n
	CpusAllowedList                                 string
	VoluntaryCtxtSwitches, NonvoluntaryCtxtSwitches uint64
}

// ParseStatus reads a status file. Lines it does not know are passed over; a
// known line with another shape is an error, and so is a file without Pid.
func ParseStatus(b []byte) (ProcStatus, error) {
	var st ProcStatus
	if err := st.Parse(b); err != nil {
		return ProcStatus{}, err
	}
	return st, nil
}

// Parse is ParseStatus into a record that is used again: its slices keep their
// memory. After an error the record is half filled.
func (st *ProcStatus) Parse(b []byte) error {
	*st = ProcStatus{NStgid: st.NStgid[:0], NSpid: st.NSpid[:0]}
	seenPid := false
	for line := range bytes.Lines(b) {
		key, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return syntaxError("status", "line", line)
		}
		// Only the name may hold blanks that count.
		value = bytes.TrimPrefix(bytes.TrimSuffix(value, []byte("\n")), []byte("\t"))
		if string(key) == "Name" {
			st.Name = unescapeName(value)
			continue
		}
		if ok, known := st.set(key, bytes.Trim(value, " \t")); known && !ok {
			return syntaxError("status", string(key), value)
		}
		seenPid = seenPid || string(key) == "Pid"
	}
	if !seenPid {
		return syntaxError("status", "Pid", nil)
	}
	return nil
}

// set stores one line's value. The switch on string(key) allocates nothing.
func (st *ProcStatus) set(key, v []byte) (ok, known bool) {
	switch string(key) {
	case "State":
		if len(v) > 0 {
			st.State = v[0]
		}
		return len(v) > 0, true
	case "Tgid":
		return setInt(&st.Tgid, v), true
	case "Pid":
		return setInt(&st.Pid, v), true
	case "PPid":
		return setInt(&st.PPid, v), true
	case "TracerPid":
		return setInt(&st.TracerPid, v), true
	case "Threads":
		return setInt(&st.Threads, v), true
	case "Uid":
		return setIDs(&st.UID, v), true
	case "Gid":
		return setIDs(&st.GID, v), true
	case "NStgid":
		return setInts(&st.NStgid, v), true
	case "NSpid":
		st.Present |= StatusHasNS
		return setInts(&st.NSpid, v), true
	case "Kthread":
		st.Present |= StatusHasKthread
		return setBool(&st.Kthread, v), true
	case "CoreDumping":
		st.Present |= StatusHasCoreDump
		return setBool(&st.CoreDumping, v), true
	case "Cpus_allowed_list":
		st.Present |= StatusHasCPUs
		st.CpusAllowedList = string(v)
		return true, true
	}
	if dst, group := st.counter(key); dst != nil {
		st.Present |= group
		return setUint(dst, v), true
	}
	if dst, group := st.memory(key); dst != nil {
		st.Present |= group
		return setKiB(dst, v), true
	}
	if dst := st.signalSet(key); dst != nil {
		st.Present |= StatusHasSignals
		n, ok := parseHex(v)
		*dst = n
		return ok, true
	}
	return true, false
}

func (st *ProcStatus) counter(key []byte) (*uint64, uint32) {
	switch string(key) {
	case "voluntary_ctxt_switches":
		return &st.VoluntaryCtxtSwitches, StatusHasSwitches
	case "nonvoluntary_ctxt_switches":
		return &st.NonvoluntaryCtxtSwitches, StatusHasSwitches
	}
	return nil, 0
}

func (st *ProcStatus) memory(key []byte) (*uint64, uint32) {
	switch string(key) {
	case "VmPeak":
		return &st.VmPeak, StatusHasMemory
	case "VmSize":
		return &st.VmSize, StatusHasMemory
	case "VmLck":
		return &st.VmLck, StatusHasMemory
	case "VmPin":
		return &st.VmPin, StatusHasPin
	case "VmHWM":
		return &st.VmHWM, StatusHasMemory
	case "VmRSS":
		return &st.VmRSS, StatusHasMemory
	case "RssAnon":
		return &st.RssAnon, StatusHasRssKinds
	case "RssFile":
		return &st.RssFile, StatusHasRssKinds
	case "RssShmem":
		return &st.RssShmem, StatusHasRssKinds
	case "VmData":
		return &st.VmData, StatusHasMemory
	case "VmStk":
		return &st.VmStk, StatusHasMemory
	case "VmExe":
		return &st.VmExe, StatusHasMemory
	case "VmLib":
		return &st.VmLib, StatusHasMemory
	case "VmPTE":
		return &st.VmPTE, StatusHasMemory
	case "VmSwap":
		return &st.VmSwap, StatusHasMemory
	}
	return nil, 0
}

func (st *ProcStatus) signalSet(key []byte) *uint64 {
	switch string(key) {
	case "SigPnd":
		return &st.SigPnd
	case "ShdPnd":
		return &st.ShdPnd
	case "SigBlk":
		return &st.SigBlk
	case "SigIgn":
		return &st.SigIgn
	case "SigCgt":
		return &st.SigCgt
	}
	return nil
}

// unescapeName undoes what the kernel does to a name here (and not in stat):
// newline becomes \n, backslash \\.
func unescapeName(b []byte) string {
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c == '\\' && i+1 < len(b) && (b[i+1] == 'n' || b[i+1] == '\\') {
			i++
			if c = b[i]; c == 'n' {
				c = '\n'
			}
		}
		out = append(out, c)
	}
	return string(out)
}

func setUint(dst *uint64, v []byte) (ok bool) {
	*dst, ok = parseUint(v)
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
