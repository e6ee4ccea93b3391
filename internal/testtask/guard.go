//go:build linux && (amd64 || arm64)

package testtask

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	guardEnv  = "STACKSHOT_TESTTASK_GUARD" // PATH=TEXT, for the guard
	guardTime = 2 * time.Minute
)

// A Guard puts a file of the system, a switch in /sys say, back to what it has to
// be: when it is told to, when the process that started it is gone, by SIGKILL
// too, and after two minutes whatever happens.
type Guard struct {
	life io.Closer // its end is what the guard waits for
	cmd  *exec.Cmd
}

// NewGuard starts a process that will write text to the file at path. To be called
// before the file is changed.
func NewGuard(path, text string) (*Guard, error) {
	if !armed {
		return nil, errors.New("testtask: MaybeRun was not called in TestMain")
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), guardEnv+"="+path+"="+text)
	cmd.Stderr = os.Stderr
	// A session of its own: what is sent to the test's process group is not for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	life, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g := &Guard{life, cmd}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		return nil, errors.Join(fmt.Errorf("testtask: the guard of %s: %w", path, err), g.Restore())
	}
	return g, nil
}

// Restore has the file written, and waits for that. A second call does nothing.
func (g *Guard) Restore() error {
	if g.cmd.ProcessState != nil {
		return nil
	}
	g.life.Close()
	return g.cmd.Wait()
}

// runGuard is the guard's process.
func runGuard(request string) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	i := strings.LastIndexByte(request, '=')
	path, text := request[:max(i, 0)], request[i+1:]
	if _, err := os.Stdout.WriteString("."); err != nil {
		return err
	}
	over := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(guardTime):
	}
	return os.WriteFile(path, []byte(text), 0o600)
}
