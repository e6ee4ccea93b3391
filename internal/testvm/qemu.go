package testvm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"stackshot/internal/testvm/fdt"
	"stackshot/internal/testvm/wire"
)

// ErrNoQEMU is a host without the emulator of an architecture.
var ErrNoQEMU = errors.New("QEMU is not installed")

// emulator is what differs between the architectures.
type emulator struct {
	program, pkg, machine, cpu string
	console                    string // the kernel's name of the first serial line
	wire                       string // device of the wire, or the name of a virtio port
}

// amd64 has its wire on the second serial line, which every kernel drives;
// arm64's machine has only one, and its kernels all have virtio built in.
var emulators = map[string]emulator{
	"amd64": {"qemu-system-x86_64", "qemu-system-x86", "q35", "max", "ttyS0", "/dev/ttyS1"},
	// Pointer authentication in QEMU's own cipher: the architecture's costs half the time.
	"arm64": {"qemu-system-aarch64", "qemu-system-arm", "virt,gic-version=3", "max,pauth-impdef=on", "ttyAMA0", wire.PortName},
}

// emulatorOf finds the emulator of an architecture and whether it is installed.
func emulatorOf(arch string) (emulator, error) {
	e, ok := emulators[arch]
	if !ok {
		return e, fmt.Errorf("no emulator for architecture %q", arch)
	}
	if _, err := exec.LookPath(e.program); err != nil {
		return e, fmt.Errorf("%w: %s (Debian's package %s)", ErrNoQEMU, e.program, e.pkg)
	}
	return e, nil
}

// machineArgs are QEMU's arguments for the machine itself, without kernel and lines.
func (e emulator) machineArgs(c *Config) []string {
	cpu := e.cpu
	if c.Layout.CPU != "" {
		cpu = c.Layout.CPU
	}
	smp := strconv.Itoa(c.cpus())
	if c.Layout.Topology != "" {
		smp += "," + c.Layout.Topology
	}
	return []string{"-machine", e.machine, "-cpu", cpu, "-smp", smp, "-m", strconv.Itoa(c.memory())}
}

// args are all of QEMU's arguments. The lines are sockets that it inherits:
// file descriptors 3 (console), 4 (wire), 5 (QMP) and 6 (the capture kernel's wire).
func (e emulator) args(c *Config, dtb string) []string {
	a := append(e.machineArgs(c),
		// One thread per guest CPU. KVM is not used even where there is one:
		// what a test sees must not depend on the host.
		"-accel", "tcg,thread=multi",
		"-nodefaults", "-display", "none",
		"-kernel", c.Kernel.Image, "-initrd", c.Initrd,
		"-append", c.commandLine(e.console),
		"-chardev", "socket,id=console,fd=3,logfile="+filepath.Join(c.LogDir, "console.log"),
		"-serial", "chardev:console",
		"-chardev", "socket,id=wire,fd=4",
		"-chardev", "socket,id=qmp,fd=5", "-mon", "chardev=qmp,mode=control")
	if e.wire != wire.PortName {
		a = append(a, "-serial", "chardev:wire")
	} else {
		a = append(a, "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=wire,name="+wire.PortName)
	}
	if c.Capture != nil {
		a = append(a, "-chardev", "socket,id=capture,fd=6",
			"-device", "virtio-serial-pci", "-device", "virtserialport,chardev=capture,name="+wire.CapturePort)
	}
	if c.VMCoreInfo {
		a = append(a, "-device", "vmcoreinfo")
	}
	if !c.Reboot {
		a = append(a, "-no-reboot")
	}
	if dtb != "" {
		a = append(a, "-dtb", dtb)
	}
	return append(a, c.QEMU...)
}

// commandLine lets a panic end the guest at once (panic=-1, with -no-reboot). On
// amd64 the kernel patches instructions that other CPUs run, by a breakpoint that
// stands there meanwhile, and QEMU may go on executing that. So nothing may doubt the
// TSC, as the clocksource watchdog does of a CPU that waited for its turn: the kernel
// then reads another clock, by an instruction that it patches. And sched_switch is
// hooked from before there is a second CPU, by the event and by what notes the names
// of its tasks: from the second hook on the kernel calls all of them by one list, and
// neither key nor call is patched when a test's programs come and go.
func (c *Config) commandLine(console string) string {
	words := []string{"console=" + console, "panic=-1", "quiet"}
	if c.Kernel.Arch == "amd64" {
		words = append(words, "tsc=nowatchdog", "trace_event=sched:sched_switch", "trace_buf_size=4096")
	}
	if c.Capture != nil {
		words = append(words, "crashkernel="+captureMemory)
	}
	return strings.TrimSpace(strings.Join(append(words, c.Layout.Append, c.Append), " "))
}

// deviceTree writes the layout's own device tree, made from the machine's, and
// returns its path; empty where the machine's own is right.
func (e emulator) deviceTree(c *Config) (string, error) {
	if !c.Layout.BigLittle {
		return "", nil
	}
	path := filepath.Join(c.LogDir, "machine.dtb")
	a := e.machineArgs(c)
	a[1] += ",dumpdtb=" + path
	cmd := exec.Command(e.program, append(a, "-nodefaults", "-display", "none")...)
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s dumpdtb: %w: %s", e.program, err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	tree, err := fdt.Parse(text)
	if err == nil {
		err = bigLittle(tree, 1024, 446)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return path, os.WriteFile(path, tree.Bytes(), 0o644)
}
