package testvm

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"stackshot/internal/testvm/wire"
)

// Config is one guest.
type Config struct {
	Kernel Kernel
	Layout Layout
	CPUs   int // 0: 2; a layout's own number goes before
	Memory int // MiB; 0: 1024
	Initrd string
	Append string   // to the kernel's command line
	QEMU   []string // more of QEMU's arguments, such as devices
	Reboot bool     // a reset boots again instead of ending the guest

	Limit  time.Duration // the guest is killed then; 0: 5 minutes
	LogDir string        // console.log, qemu.log; must exist

	// OnFrame is called for each frame of the wire, in order, by one goroutine.
	OnFrame func(wire.Frame)

	// Modules are those of the kernel's package that the first process loads before the
	// program runs, with those that they need: "name", or "name parameter=value ...".
	Modules []string

	Capture *Capture // what a capture kernel does after a panic; nil: there is none
	// VMCoreInfo gives the guest a device that takes the address of the kernel's
	// VMCOREINFO note, for QEMU to put it into dumps. The kernel's module qemu_fw_cfg writes it.
	VMCoreInfo bool
}

func (c *Config) cpus() int { return first(c.Layout.CPUs, c.CPUs, 2) }

func (c *Config) memory() int { return first(c.Memory, 1024) }

func first[T comparable](all ...T) T {
	var zero T
	for _, v := range all {
		if v != zero {
			return v
		}
	}
	return zero
}

// Guest is a machine that runs. Its methods may be called from any goroutine.
type Guest struct {
	arch string
	cmd  *exec.Cmd
	mon  *monitor
	tty  net.Conn
	text console

	done       chan struct{} // closed when QEMU has ended and all is read; the fields below are constant then
	exitErr    error         // of QEMU
	wireErr    error         // what came over the wire was no frame; written by its reader alone
	captureErr error         // the same of the capture kernel's wire
	garbled    chan struct{} // closed when the wire carries no frames

	mu    sync.Mutex
	timed bool // the limit ended it
}

// Start boots a guest. It lives until it powers off, Close, its limit, or the
// end of this process, whichever comes first.
func Start(ctx context.Context, c Config) (*Guest, error) {
	e, err := emulatorOf(c.Kernel.Arch)
	if err != nil {
		return nil, err
	}
	if c.LogDir, err = filepath.Abs(c.LogDir); err != nil {
		return nil, err
	}
	dtb, err := e.deviceTree(&c)
	if err != nil {
		return nil, err
	}
	errs, err := os.Create(filepath.Join(c.LogDir, "qemu.log"))
	if err != nil {
		return nil, err
	}
	defer errs.Close()
	cmd := exec.CommandContext(ctx, e.program, e.args(&c, dtb)...)
	cmd.Stderr = errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	fmt.Fprintf(errs, "%q\n", cmd.Args)
	n := 3
	if c.Capture != nil {
		n++
	}
	ours, err := lines(cmd, n)
	if err != nil {
		return nil, err
	}
	err = cmd.Start()
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	if err != nil {
		for _, l := range ours {
			l.Close()
		}
		return nil, err
	}
	g := &Guest{arch: c.Kernel.Arch, cmd: cmd, tty: ours[0], mon: newMonitor(ours[2]), done: make(chan struct{}), garbled: make(chan struct{})}
	go g.serve(ours, &c)
	if err := g.mon.command("qmp_capabilities", nil); err != nil {
		g.Close()
		return nil, fmt.Errorf("%w; see %s", err, errs.Name())
	}
	return g, nil
}

// lines makes n socket pairs: one end for QEMU, as its descriptors 3 and up, the
// other for us.
func lines(cmd *exec.Cmd, n int) ([]net.Conn, error) {
	var ours []net.Conn
	for range n {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(fds[1]), "qemu"))
		f := os.NewFile(uintptr(fds[0]), "line")
		conn, err := net.FileConn(f)
		f.Close()
		if err != nil {
			return nil, err
		}
		ours = append(ours, conn)
	}
	return ours, nil
}

// serve reads the lines until QEMU ends, and sees to it that it does.
func (g *Guest) serve(ours []net.Conn, c *Config) {
	timer := time.AfterFunc(first(c.Limit, 5*time.Minute), func() {
		g.mu.Lock()
		g.timed = true
		g.mu.Unlock()
		g.cmd.Process.Kill()
	})
	var readers sync.WaitGroup
	readers.Go(func() { g.text.read(ours[0]) })
	readers.Go(func() {
		if err := readWire(ours[1], c.OnFrame); err != nil {
			g.wireErr = err
			close(g.garbled)
			discard(ours[1])
		}
	})
	if c.Capture != nil {
		readers.Go(func() {
			if g.captureErr = readWire(ours[3], c.Capture.OnFrame); g.captureErr != nil {
				discard(ours[3])
			}
		})
	}
	g.exitErr = g.cmd.Wait()
	timer.Stop()
	readers.Wait()
	for _, l := range ours {
		l.Close()
	}
	close(g.done)
}

// Done is closed when the guest has ended and all it said has been read.
func (g *Guest) Done() <-chan struct{} { return g.done }

// TimedOut says that the limit ended the guest.
func (g *Guest) TimedOut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.timed
}

// Console is what the guest's console has printed so far, by lines.
func (g *Guest) Console() []string { return g.text.all() }

// Close ends the guest if it runs and waits for its end. It may be called again.
func (g *Guest) Close() {
	g.cmd.Process.Kill()
	<-g.done
}
