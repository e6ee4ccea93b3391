package procfs

import (
	"bytes"

	"stackshot/internal/timens"
)

// ProcStat holds the fields in use of /proc/PID/stat or /proc/PID/task/TID/stat, in
// the file's order. For a task the times and faults are those of all its threads,
// for a thread its own. Ticks are USER_HZ, 100 a second.
type ProcStat struct {
	PID        int
	Comm       string // any bytes but NUL, up to 15; longer for kernel workers
	State      byte   // R S D T t Z X I …
	PPID       int
	PGRP       int
	Session    int
	Flags      uint32 // PF_*
	MinFlt     uint64
	MajFlt     uint64
	Utime      uint64 // ticks
	Stime      uint64 // ticks
	Priority   int32  // 20+nice; negative: real time
	Nice       int32
	NumThreads int32
	StartTime  uint64 // ticks since boot, by the clock of this process (StartBoottime)
	VSize      uint64 // bytes
	EndCode    uint64 // of the executable, or NoRight; 0 without memory and in the middle of an exec
	StartStack uint64 // above it are arguments and environment; 0 without the right to trace the process
	Processor  uint32
	RTPriority uint32
	Policy     uint32
	EndData    uint64 // 0 where EndCode is 0 or NoRight, and if Fields is less than 46
	ExitCode   int32  // field 52: 0 if Fields is less, or without the right to trace the process
	Fields     int    // number of fields in the file, at least 41
}

// NoRight is what EndCode is without the right to trace the process.
const NoRight = 1

// tick is USER_HZ, ns: 100 a second on every Linux architecture that runs BPF.
const tick = 10_000_000

// StartBoottime is when the task started, in ns of the machine's CLOCK_BOOTTIME,
// rounded down to a tick. In a time namespace the kernel shows StartTime by the clock
// of that namespace (timens_add_boottime_ns in fs/proc/array.c, Linux 5.6).
func (s *ProcStat) StartBoottime() uint64 { return s.StartTime*tick - uint64(timens.Boottime) }

// StartedAt reports whether StartTime fits a task that started at this time, in ns of
// the machine's CLOCK_BOOTTIME. The time may itself come from a StartBoottime of
// another namespace, so a difference of one tick counts as equal.
func (s *ProcStat) StartedAt(boottime uint64) bool {
	shown := (boottime + uint64(timens.Boottime)) / tick
	return shown <= s.StartTime+1 && s.StartTime <= shown+1
}

// Numbers of fields that old kernels lack, from 1.
const (
	statEndData  = 46
	statExitCode = 52
)

// ParseStat reads one stat line. The name is what lies between the first '('
// and the last ')', for it may hold blanks, brackets and newlines, and no field
// after it holds a bracket. Fields beyond those that ProcStat has are skipped.
func ParseStat(b []byte) (ProcStat, error) {
	left, right := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if left < 0 || right < left {
		return ProcStat{}, syntaxError("stat", "comm", b)
	}
	pid, ok := parseUint(bytes.TrimSuffix(b[:left], []byte(" ")))
	if !ok || pid > 1<<31-1 {
		return ProcStat{}, syntaxError("stat", "pid", b[:left])
	}
	st := ProcStat{PID: int(pid), Comm: string(b[left+1 : right])}
	s := scanner{file: "stat", rest: b[right+1:], field: 2}
	state := s.next()
	if len(state) != 1 {
		return ProcStat{}, syntaxError("stat", "state", state)
	}
	st.State = state[0]
	st.numbers(&s)
	for s.more() {
		s.next()
	}
	if s.err != nil {
		return ProcStat{}, s.err
	}
	st.Fields = s.field
	return st, nil
}

// numbers reads fields 4 to 52. Every kernel since 2.5.19 writes those up to 41, policy.
func (st *ProcStat) numbers(s *scanner) {
	st.PPID = int(s.i32())
	st.PGRP = int(s.i32())
	st.Session = int(s.i32())
	s.skip(2) // tty, tpgid
	st.Flags = s.u32()
	st.MinFlt = s.uint()
	s.skip(1) // cminflt
	st.MajFlt = s.uint()
	s.skip(1) // cmajflt
	st.Utime = s.uint()
	st.Stime = s.uint()
	s.skip(2) // cutime, cstime
	st.Priority = s.i32()
	st.Nice = s.i32()
	st.NumThreads = s.i32()
	s.skip(1) // itrealvalue
	st.StartTime = s.uint()
	st.VSize = s.uint()
	s.skip(3) // rss, rsslim, startcode
	st.EndCode = s.uint()
	st.StartStack = s.uint()
	s.skip(10) // kstkesp to exit_signal
	st.Processor = s.u32()
	st.RTPriority = s.u32()
	st.Policy = s.u32()
	if s.to(statEndData) {
		st.EndData = s.uint()
	}
	if s.to(statExitCode) {
		st.ExitCode = s.i32()
	}
}
