package snapshot

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// child is a process that works for a test, and ends with it.
type child struct {
	*exec.Cmd
	pid int
	in  io.WriteCloser
	out *bufio.Reader // from the second line on
}

// again is this test binary once more; the variables of its environment say what
// it is then.
func again(args []string, vars ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), vars...)
	cmd.Stderr = os.Stderr
	return cmd
}

// startChild starts a process and waits for its first line, which has to be of
// this format.
func startChild(tb testing.TB, cmd *exec.Cmd, format string, values ...any) *child {
	tb.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	c := &child{cmd, cmd.Process.Pid, in, bufio.NewReader(out)}
	line, _ := c.out.ReadString('\n')
	if _, err := fmt.Sscanf(line, format, values...); err != nil {
		in.Close()
		rest, _ := io.ReadAll(c.out)
		tb.Fatalf("%q says %q: %v\n%s", cmd.Args, line, err, rest)
	}
	return c
}
