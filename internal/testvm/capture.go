package testvm

import (
	"context"
	"fmt"
	"path/filepath"

	"stackshot/internal/testneed"
	"stackshot/internal/testvm/wire"
)

// Capture is what a guest's capture kernel does (kdump). The first process loads it
// before the program runs, by kexec_file_load. A panic starts it in memory that is set
// apart; it sees the dead kernel's memory as /proc/vmcore, runs one program on one CPU
// and powers off. amd64 only: Debian's arm64 kernels have no kexec_file_load. The guest
// needs 1 GiB (Config.Memory).
type Capture struct {
	Program string   // path, here, of a static program (Builder.Program, Builder.TestBinary)
	Args    []string // without the program's name
	Env     []string // more than PATH, HOME, TMPDIR and what says that this is a guest
	Append  string   // to the capture kernel's command line

	// OnFrame is called for each frame of the capture kernel's first process, which has
	// a wire of its own: the panic may have cut a frame on the other. Drive sets it.
	OnFrame func(wire.Frame)
}

// captureModules drive the capture kernel's wire: a serial line takes 10 s for a megabyte.
// From 6.12 on they are built in.
var captureModules = []string{"virtio_pci", "virtio_console"}

const (
	captureMemory = "256M" // for the capture kernel
	// One CPU (the others stand where the panic left them), and devices whose
	// interrupts nobody has taken back.
	captureLine = "console=ttyS0 panic=-1 quiet nr_cpus=1 reset_devices irqpoll tsc=nowatchdog"
)

// addCapture packs the capture kernel and an initramfs of its own.
func (b *Builder) addCapture(ctx context.Context, m *image, k Kernel, c *Capture, initrd string) error {
	if k.Arch != "amd64" {
		return fmt.Errorf("no capture kernel on %s: its kernel has no kexec_file_load", k.Arch)
	}
	inner := image{init: m.init, program: c.Program, job: &wire.Job{
		Args: append([]string{"/bin/" + filepath.Base(c.Program)}, c.Args...),
		Dir:  "/", Env: append([]string{"PATH=/bin", "HOME=/root", "TMPDIR=/tmp", testneed.GuestVar + "=1"}, c.Env...), Wire: wire.CapturePort,
	}}
	if err := inner.addModules(&k, captureModules); err != nil {
		return err
	}
	if err := inner.write(ctx, initrd); err != nil {
		return err
	}
	m.job.Setup.Capture = captureLine + " " + c.Append
	m.more[wire.CaptureKernel[1:]] = k.Image
	m.more[wire.CaptureInitrd[1:]] = initrd
	return nil
}
