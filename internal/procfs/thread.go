package procfs

import "bytes"

// Schedstat is /proc/PID/task/TID/schedstat. All zero where the kernel keeps no
// sched_info.
type Schedstat struct {
	RunNs      uint64 // on a CPU, ns
	RunDelayNs uint64 // on a runqueue, waiting, ns
	Timeslices uint64 // times run on a CPU
}

// ParseSchedstat reads the three numbers; more may follow.
func ParseSchedstat(b []byte) (Schedstat, error) {
	s := scanner{file: "schedstat", rest: b}
	st := Schedstat{s.uint(), s.uint(), s.uint()}
	if s.err != nil {
		return Schedstat{}, s.err
	}
	return st, nil
}

// Syscall is /proc/PID/task/TID/syscall.
type Syscall struct {
	Running bool  // the thread was running: nothing else is known
	Nr      int64 // negative: blocked, but not in a system call
	Args    [6]uint64
	SP, PC  uint64 // of user mode
}

// InUserSpace says whether the thread has user registers at all. For a kernel
// thread the file reads like system call 0 with every register 0.
func (s *Syscall) InUserSpace() bool { return !s.Running && (s.SP != 0 || s.PC != 0) }

// ParseSyscall reads "running", "-1 sp pc" or "nr a0 a1 a2 a3 a4 a5 sp pc".
func ParseSyscall(b []byte) (Syscall, error) {
	if string(bytes.TrimSpace(b)) == "running" {
		return Syscall{Running: true}, nil
	}
	s := scanner{file: "syscall", rest: b}
	call := Syscall{Nr: s.int()}
	if call.Nr >= 0 {
		for i := range call.Args {
			call.Args[i] = s.hex()
		}
	}
	call.SP, call.PC = s.hex(), s.hex()
	if s.more() {
		s.fail(s.next())
	}
	if s.err != nil {
		return Syscall{}, s.err
	}
	return call, nil
}

// IO is /proc/PID/io or /proc/PID/task/TID/io: bytes and calls.
type IO struct {
	Rchar, Wchar          uint64 // bytes through read and write, cache or not
	Syscr, Syscw          uint64 // calls
	ReadBytes, WriteBytes uint64 // bytes from and to storage
	CancelledWriteBytes   uint64
}

// ParseIO reads the seven lines, in any order. One that is missing is an error;
// others are passed over.
func ParseIO(b []byte) (IO, error) {
	var io IO
	seen := 0
	for line := range bytes.Lines(b) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		dst, bit := io.field(key)
		if dst == nil {
			continue
		}
		if !setUint(dst, bytes.TrimSpace(value)) {
			return IO{}, syntaxError("io", string(key), value)
		}
		seen |= bit
	}
	if seen != 1<<7-1 {
		return IO{}, syntaxError("io", "missing line", b)
	}
	return io, nil
}

func (io *IO) field(key []byte) (*uint64, int) {
	switch string(key) {
	case "rchar":
		return &io.Rchar, 1 << 0
	case "wchar":
		return &io.Wchar, 1 << 1
	case "syscr":
		return &io.Syscr, 1 << 2
	case "syscw":
		return &io.Syscw, 1 << 3
	case "read_bytes":
		return &io.ReadBytes, 1 << 4
	case "write_bytes":
		return &io.WriteBytes, 1 << 5
	case "cancelled_write_bytes":
		return &io.CancelledWriteBytes, 1 << 6
	}
	return nil, 0
}

// ParseComm reads a comm file: the name and one newline. The name itself may
// hold newlines.
func ParseComm(b []byte) string { return string(bytes.TrimSuffix(b, []byte("\n"))) }
