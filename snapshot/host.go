package snapshot

import (
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/procfs"
	"stackshot/internal/timens"
	"stackshot/kcdata"
)

// host is what the file says of the machine and does not change with time.
// What could not be read stays zero and is absent from the file.
type host struct {
	hostname, release, version, arch string
	bootID, cmdline                  string
	kernelBuild                      []byte
	pidNS                            uint32
	firstNS                          bool
	kallsyms                         *procfs.Kallsyms // nil: not readable
	kallsymsWhy                      string
	depth                            int
}

// userHz is the tick of /proc, USER_HZ: 100 on every Linux architecture that
// runs BPF.
const userHz = 100

func describeHost(proc procfs.FS, redact bool) *host {
	h := &host{depth: bpf.StackDepth()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.hostname = unix.ByteSliceToString(u.Nodename[:])
		h.release = unix.ByteSliceToString(u.Release[:])
		h.version = unix.ByteSliceToString(u.Version[:])
		h.arch = unix.ByteSliceToString(u.Machine[:])
	}
	h.bootID, _ = proc.BootID()
	if b, err := os.ReadFile("/proc/cmdline"); err == nil && !redact {
		h.cmdline = strings.TrimSpace(string(b))
	}
	h.kernelBuild, _ = procfs.ReadKernelBuildID("/sys")
	h.pidNS, h.firstNS, _ = proc.PidNamespace()
	h.readSymbols()
	return h
}

func (h *host) readSymbols() {
	k, err := procfs.ReadKallsyms("/proc")
	switch {
	case err != nil:
		h.kallsymsWhy = err.Error()
	case k.Hidden():
		h.kallsymsWhy = "kernel addresses are hidden (kernel.kptr_restrict, CAP_SYSLOG)"
	default:
		h.kallsyms = k
	}
}

func (h *host) textAddr() uint64 {
	if h.kallsyms == nil {
		return 0
	}
	return h.kallsyms.TextAddr()
}

// moment is the machine's three clocks at one time, ns.
type moment struct{ monotonic, boottime, realtime uint64 }

// now reads the three clocks next to each other.
func now() moment {
	return moment{
		readClock(unix.CLOCK_MONOTONIC) - uint64(timens.Monotonic),
		readClock(unix.CLOCK_BOOTTIME) - uint64(timens.Boottime),
		readClock(unix.CLOCK_REALTIME),
	}
}

// momentOf is what the clocks showed when CLOCK_MONOTONIC showed at, if nobody
// has set one of them since; 0: now.
func momentOf(at uint64) moment {
	m := now()
	if at == 0 || at > m.monotonic {
		return m
	}
	ago := m.monotonic - at
	return moment{at, m.boottime - ago, m.realtime - ago}
}

func readClock(id int32) uint64 {
	var ts unix.Timespec
	unix.ClockGettime(id, &ts)
	return uint64(ts.Nano())
}

// bootEpoch is CLOCK_REALTIME minus CLOCK_BOOTTIME, to the second: the same for
// every capture unless somebody sets the clock.
func bootEpoch() uint64 {
	m := now()
	const second = 1_000_000_000
	return (m.realtime - m.boottime + second/2) / second * second
}

// currentCPU is where this thread runs; the request's initiator.
func currentCPU() int {
	var cpu uint32
	unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
	return int(cpu)
}

// machine is the top-level machine record; at is the stop.
func (h *host) machine(at moment, redact bool) kcdata.LinuxMachine {
	m := kcdata.LinuxMachine{
		MonotonicNs: at.monotonic, BoottimeNs: at.boottime, RealtimeNs: at.realtime, TextAddr: h.textAddr(),
		PidNS: uint64(h.pidNS), UserHz: userHz, MaxStackDepth: uint32(h.depth),
	}
	if h.firstNS {
		m.PidNSIsFirst = 1
	}
	if redact {
		m.Redacted, m.TextAddr = 1, 0
	}
	return m
}
