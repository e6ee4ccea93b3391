package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"stackshot/internal/testvm/wire"
)

// setUp changes the guest as the layout wants it. What could not be done is
// returned, and the run goes on: the tests say what follows from it.
func setUp(s wire.Setup) []error {
	var all []error
	do := func(err error) {
		if err != nil {
			all = append(all, err)
		}
	}
	do(unix.Sethostname([]byte("testvm")))
	do(os.MkdirAll(wire.OutDir, 0o755))
	do(loopbackUp())
	if runtime.GOARCH == "amd64" {
		// The command line hooks sched_switch (testvm's commandLine says why). Its
		// buffer is read by nobody: without it a switch costs two empty calls.
		do(os.WriteFile("/sys/kernel/tracing/tracing_on", []byte("0"), 0))
	}
	for _, cpu := range s.Offline {
		do(os.WriteFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu), []byte("0"), 0))
	}
	for name, value := range s.Sysctl {
		do(os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0))
	}
	return all
}

// loopbackUp lets connections be made within the guest.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}

// start starts the program, without the right to SCHED_FIFO if asked for. The
// bounding set belongs to this thread, which the program inherits it from and
// which is not used again.
func start(cmd *exec.Cmd, noFIFO bool) error {
	if !noFIFO {
		return cmd.Start()
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_NICE, 0, 0, 0); err != nil {
		return fmt.Errorf("drop CAP_SYS_NICE: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_RTPRIO, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("RLIMIT_RTPRIO: %w", err)
	}
	return cmd.Start()
}
