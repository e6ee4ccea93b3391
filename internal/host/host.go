package host

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/clock"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// Host describes what does not change while the machine runs. A value that could not be read
// stays zero and is absent from the file.
type Host struct {
	Hostname, Release, Version, Arch string
	BootID, Cmdline                  string
	KernelBuild                      []byte
	PidNS                            uint32
	FirstNS                          bool
	Kallsyms                         *procfs.Kallsyms // nil: not readable
	KallsymsWhy                      string
	Depth                            int // most frames of a kernel stack
	PageSize                         int // bytes

	dead bool            // the machine is not this one, or not any more
	mods []procfs.Module // of a dead one
}

// UserHz is the tick of /proc, USER_HZ: 100 on every Linux architecture that
// runs BPF.
const UserHz = 100

// Describe reads the description by way of proc. With redact it does not read the kernel's
// command line.
func Describe(proc procfs.FS, redact bool) *Host {
	h := &Host{Depth: bpf.StackDepth(), PageSize: os.Getpagesize()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Hostname = unix.ByteSliceToString(u.Nodename[:])
		h.Release = unix.ByteSliceToString(u.Release[:])
		h.Version = unix.ByteSliceToString(u.Version[:])
		h.Arch = unix.ByteSliceToString(u.Machine[:])
	}
	h.BootID, _ = proc.BootID()
	if b, err := os.ReadFile("/proc/cmdline"); err == nil && !redact {
		h.Cmdline = strings.TrimSpace(string(b))
	}
	h.KernelBuild, _ = procfs.ReadKernelBuildID("/sys")
	h.PidNS, h.FirstNS, _ = proc.PidNamespace()
	h.readSymbols()
	return h
}

func (h *Host) readSymbols() {
	k, err := procfs.ReadKallsyms("/proc")
	switch {
	case err != nil:
		h.KallsymsWhy = err.Error()
	case k.Hidden():
		h.KallsymsWhy = "kernel addresses are hidden (kernel.kptr_restrict, CAP_SYSLOG)"
	default:
		h.Kallsyms = k
	}
}

// TextAddr is the address of _text; 0: not known.
func (h *Host) TextAddr() uint64 {
	if h.Kallsyms == nil {
		return 0
	}
	return h.Kallsyms.TextAddr()
}

// Machine is the top-level machine record; at is the moment of the stop.
func (h *Host) Machine(at clock.Moment, redact bool) kcdata.LinuxMachine {
	m := kcdata.LinuxMachine{
		MonotonicNs: at.Monotonic, BoottimeNs: at.Boottime, RealtimeNs: at.Realtime, TextAddr: h.TextAddr(),
		PidNS: uint64(h.PidNS), UserHz: UserHz, MaxStackDepth: uint32(h.Depth),
	}
	if h.FirstNS {
		m.PidNSIsFirst = 1
	}
	if redact {
		m.Redacted, m.TextAddr = 1, 0
	}
	return m
}

// Modules are the modules that are loaded now; none where /proc hides them.
func (h *Host) Modules() []procfs.Module {
	if h.dead {
		return h.mods
	}
	mods, err := procfs.ReadModules("/proc", "/sys")
	if err != nil {
		return nil
	}
	return mods
}
