package snapshot

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/procfs"
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

// modules are the loaded modules; none where /proc hides them.
func (h *host) modules() []procfs.Module {
	mods, err := procfs.ReadModules("/proc", "/sys")
	if err != nil {
		return nil
	}
	return mods
}
