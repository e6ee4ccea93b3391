package procfs

import (
	"bytes"
	"slices"
)

// Schedstat is /proc/PID/task/TID/schedstat. All zero if the kernel keeps no
// sched_info.
type Schedstat struct {
	RunNs      uint64 // time on a CPU, ns
	RunDelayNs uint64 // time on a runqueue without a CPU, ns
	Timeslices uint64 // number of times that it got a CPU
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

// Syscall is /proc/PID/task/TID/syscall; zero for a thread that was running.
type Syscall struct {
	Nr     int64 // negative: blocked, but not in a system call
	Args   [6]uint64
	SP, PC uint64 // of user mode
}

// InUserSpace reports whether the file has the thread's user registers. For a kernel
// thread it reads like system call 0 with every register 0.
func (s *Syscall) InUserSpace() bool { return s.SP != 0 || s.PC != 0 }

// ParseSyscall reads "running", "-1 sp pc" or "nr a0 a1 a2 a3 a4 a5 sp pc".
func ParseSyscall(b []byte) (Syscall, error) {
	if string(bytes.TrimSpace(b)) == "running" {
		return Syscall{}, nil
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

// ioKeys are the lines of an io file, in the order of IO's fields.
var ioKeys = []string{"rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes"}

// ParseIO reads the seven lines, in any order, and skips others. A missing line is an
// error.
func ParseIO(b []byte) (IO, error) {
	var io IO
	fields := [...]*uint64{&io.Rchar, &io.Wchar, &io.Syscr, &io.Syscw, &io.ReadBytes, &io.WriteBytes, &io.CancelledWriteBytes}
	seen := 0
	for line := range bytes.Lines(b) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		i := slices.Index(ioKeys, string(key))
		if i < 0 {
			continue
		}
		if !setUint(fields[i], bytes.TrimSpace(value)) {
			return IO{}, syntaxError("io", string(key), value)
		}
		seen |= 1 << i
	}
	if seen != 1<<len(fields)-1 {
		return IO{}, syntaxError("io", "missing line", b)
	}
	return io, nil
}
