package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testvm/wire"
)

// afterExit is how long output of children that outlive the program is awaited.
const afterExit = 2 * time.Second

// serve does the job that lies in the initramfs.
func serve() error {
	text, err := os.ReadFile(wire.JobFile)
	if err != nil {
		return err
	}
	var job wire.Job
	if err := json.Unmarshal(text, &job); err != nil {
		return fmt.Errorf("%s: %w", wire.JobFile, err)
	}
	// The wire may need a module.
	loaded := loadModules(job.Setup.Modules)
	port, err := openWire(job.Wire)
	if err != nil {
		return errors.Join(loaded, err)
	}
	defer port.Close()
	if err := wire.Write(port, wire.Hello, []byte(release())); err != nil {
		return err
	}
	for _, err := range setUp(job.Setup) {
		wire.Write(port, wire.Note, []byte(err.Error()))
	}
	// Without what the job needs in the kernel the program is not run.
	code, err := 127, loaded
	if err == nil && job.Setup.Capture != "" {
		err = loadCapture(job.Setup.Capture)
	}
	if err == nil {
		code, err = run(&job, port)
	}
	if err != nil {
		wire.Write(port, wire.Note, []byte(err.Error()))
	}
	if err := sendFiles(port, wire.OutDir); err != nil {
		wire.Write(port, wire.Note, []byte(err.Error()))
	}
	if err := wire.Write(port, wire.Exit, []byte(strconv.Itoa(code))); err != nil {
		return err
	}
	// The last bytes must leave the port before the power goes. TCSBRK with 1
	// waits for that; a virtio port is no terminal and has none to wait for.
	unix.IoctlSetInt(int(port.Fd()), unix.TCSBRK, 1)
	return nil
}

func release() string {
	var u unix.Utsname
	unix.Uname(&u)
	return unix.ByteSliceToString(u.Release[:])
}

// openWire opens a serial port without echo and translation, or the virtio port of
// that name, which may appear a little after boot.
func openWire(name string) (*os.File, error) {
	device := name
	for n := 0; !filepath.IsAbs(device); n++ {
		if n == 100 {
			return nil, fmt.Errorf("no virtio port %s after 5 s", name)
		}
		if device = virtioPort(name); device == "" {
			time.Sleep(50 * time.Millisecond)
		}
	}
	f, err := os.OpenFile(device, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if errors.Is(err, unix.ENOTTY) {
		return f, nil
	}
	if err == nil {
		t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
		err = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", device, err)
	}
	return f, nil
}

// virtioPort is the device of a virtio port, "" if there is none yet.
func virtioPort(name string) string {
	files, _ := filepath.Glob("/sys/class/virtio-ports/*/name")
	for _, file := range files {
		if b, _ := os.ReadFile(file); strings.TrimSpace(string(b)) == name {
			return "/dev/" + filepath.Base(filepath.Dir(file))
		}
	}
	return ""
}

// run runs the program and returns its exit code, 128 and the signal if one
// killed it, or 127 if it did not start.
func run(job *wire.Job, port io.Writer) (int, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return 127, err
	}
	cmd := exec.Command(job.Args[0], job.Args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = job.Dir, job.Env, in, in
	if err := start(cmd, job.Setup.NoFIFO); err != nil {
		return 127, err
	}
	in.Close()
	sent := make(chan error, 1)
	go func() { sent <- sendOutput(port, out) }()
	began := time.Now()
	code, peak, err := reap(cmd.Process.Pid)
	took := time.Since(began)
	out.SetReadDeadline(time.Now().Add(afterExit))
	err = errors.Join(err, <-sent)
	return code, errors.Join(err, wire.Write(port, wire.Used, fmt.Appendf(nil, "%d %d", peak, took.Milliseconds())))
}

func sendOutput(port io.Writer, out io.Reader) error {
	buf := make([]byte, 16<<10)
	for {
		n, err := out.Read(buf)
		if n > 0 {
			if err := wire.Write(port, wire.Output, buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// reap waits for the program and, as the first process must, for every orphan
// that comes before. peak is what the program had resident at most, KiB.
func reap(pid int) (code int, peak int64, err error) {
	for {
		var status unix.WaitStatus
		var use unix.Rusage
		got, err := unix.Wait4(-1, &status, 0, &use)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 127, 0, fmt.Errorf("wait: %w", err)
		}
		if got != pid {
			continue
		}
		if status.Signaled() {
			return 128 + int(status.Signal()), use.Maxrss, fmt.Errorf("killed by %v", status.Signal())
		}
		return status.ExitStatus(), use.Maxrss, nil
	}
}

// sendFiles sends every regular file under dir, in pieces.
func sendFiles(port io.Writer, dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		for first := true; first || len(data) > 0; first = false {
			n := min(len(data), 64<<10)
			if err := wire.Write(port, wire.File, append([]byte(name+"\x00"), data[:n]...)); err != nil {
				return err
			}
			data = data[n:]
		}
		return nil
	})
}
