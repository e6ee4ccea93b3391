package procfs

import (
	"bytes"

	"stackshot/internal/timens"
)

// ProcStat is /proc/PID/stat or /proc/PID/task/TID/stat, in the file's order.
// For a task the times and faults are those of all its threads, for a thread
// its own. Ticks are USER_HZ, 100 a second; addresses and signal sets read 0
// without the right to trace the process.
type ProcStat struct {
	PID        int
	Comm       string // any bytes but NUL, up to 15; longer for kernel workers
	State      byte   // R S D T t Z X I …
	PPID       int
	PGRP       int
	Session    int
	TTY        int32 // device number
	TPGID      int32 // -1: none
	Flags      uint32
	MinFlt     uint64
	CMinFlt    uint64
	MajFlt     uint64
	CMajFlt    uint64
	Utime      uint64 // ticks
	Stime      uint64 // ticks
	CUtime     int64  // ticks
	CStime     int64  // ticks
	Priority   int32  // 20+nice; negative: real time
	Nice       int32
	NumThreads int32
	StartTime  uint64 // ticks since boot, by the clock of this process (StartBoottime)
	VSize      uint64 // bytes
	RSS        int64  // pages
	RSSLimit   uint64 // bytes
	StartCode  uint64
	EndCode    uint64
	StartStack uint64
	KstkESP    uint64
	KstkEIP    uint64
	Wchan      uint64 // 1: waits, 0: not; an address in old kernels
	ExitSignal int32
	Processor  uint32
	RTPriority uint32
	Policy     uint32

	// From here on a kernel may lack fields: Fields says how many there were.
	BlkioTicks uint64 // field 42
	GuestTime  uint64 // 43, ticks
	CGuestTime int64  // 44, ticks
	StartData  uint64
	EndData    uint64
	StartBrk   uint64
	ArgStart   uint64
	ArgEnd     uint64
	EnvStart   uint64
	EnvEnd     uint64
	ExitCode   int32 // 52
	Fields     int   // number of fields in the file, at least 41
}

// tick is USER_HZ, ns: 100 a second on every Linux architecture that runs BPF.
const tick = 10_000_000

// StartBoottime is when the task started, in ns of the machine's CLOCK_BOOTTIME,
// to a tick. In a time namespace the kernel shows us StartTime by the clock of
// that namespace (timens_add_boottime_ns in fs/proc/array.c, Linux 5.6).
func (s *ProcStat) StartBoottime() uint64 { return s.StartTime*tick - uint64(timens.Boottime) }

// StartedAt reports whether a task that started at this time, in ns of the
// machine's CLOCK_BOOTTIME, is shown with this StartTime. The time may itself come
// of a StartBoottime, of another namespace: a tick more or less is the same.
func (s *ProcStat) StartedAt(boottime uint64) bool {
	shown := (boottime + uint64(timens.Boottime)) / tick
	return shown <= s.StartTime+1 && s.StartTime <= shown+1
}

// ParseStat reads one stat line. The name is what lies between the first '('
// and the last ')', for it may hold blanks, brackets and newlines, and nothing
// after it does. Fields beyond the 52 known ones are passed over.
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
	st.required(&s)
	if s.err == nil {
		st.optional(&s)
	}
	if s.err != nil {
		return ProcStat{}, s.err
	}
	for s.more() {
		s.next()
	}
	st.Fields = s.field
	return st, nil
}

// required takes fields 4 to 41, which every kernel since 2.5.19 writes.
func (st *ProcStat) required(s *scanner) {
	st.PPID = int(s.i32())
	st.PGRP = int(s.i32())
	st.Session = int(s.i32())
	st.TTY = s.i32()
	st.TPGID = s.i32()
	st.Flags = s.u32()
	st.MinFlt = s.uint()
	st.CMinFlt = s.uint()
	st.MajFlt = s.uint()
	st.CMajFlt = s.uint()
	st.Utime = s.uint()
	st.Stime = s.uint()
	st.CUtime = s.int()
	st.CStime = s.int()
	st.Priority = s.i32()
	st.Nice = s.i32()
	st.NumThreads = s.i32()
	s.int() // itrealvalue, 0 since 2.6.17
	st.StartTime = s.uint()
	st.VSize = s.uint()
	st.RSS = s.int()
	st.RSSLimit = s.uint()
	st.StartCode = s.uint()
	st.EndCode = s.uint()
	st.StartStack = s.uint()
	st.KstkESP = s.uint()
	st.KstkEIP = s.uint()
	for range 4 { // the low 31 bits of the signal sets; status has them whole
		s.uint()
	}
	st.Wchan = s.uint()
	s.uint() // nswap
	s.uint() // cnswap
	st.ExitSignal = s.i32()
	st.Processor = s.u32()
	st.RTPriority = s.u32()
	st.Policy = s.u32()
}

func (st *ProcStat) optional(s *scanner) {
	for _, dst := range []*uint64{&st.BlkioTicks, &st.GuestTime} {
		if s.more() {
			*dst = s.uint()
		}
	}
	if s.more() {
		st.CGuestTime = s.int()
	}
	for _, dst := range []*uint64{&st.StartData, &st.EndData, &st.StartBrk,
		&st.ArgStart, &st.ArgEnd, &st.EnvStart, &st.EnvEnd} {
		if s.more() {
			*dst = s.uint()
		}
	}
	if s.more() {
		st.ExitCode = s.i32()
	}
}
