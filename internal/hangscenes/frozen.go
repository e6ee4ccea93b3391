//go:build linux && (amd64 || arm64)

package hangscenes

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"testing"

	"stackshot/internal/testneed"
)

// Frozen has n programs in D make files in a file system that is frozen, and gives its mount point. It
// is thawed before they end, which cannot before that: by a process that does it even if the test dies.
func Frozen(tb testing.TB, n int) (dir string, pids []int) {
	tb.Helper()
	testneed.Program(tb, "mkfs.ext4")
	d, err := makeDisk(tb)
	if err != nil {
		tb.Fatalf("hangscenes: disk: %v", err)
	}
	guard := exec.Command("sh", "-c", `fsfreeze -f "$0" && echo frozen; read line; fsfreeze -u "$0"`, d.dir)
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no Ctrl-C is for it
	in, err := guard.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := guard.StdoutPipe()
	if err == nil {
		err = guard.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	var touches []*exec.Cmd
	tb.Cleanup(func() {
		in.Close()
		io.Copy(io.Discard, out)
		if err := guard.Wait(); err != nil {
			tb.Errorf("hangscenes: thaw %s: %v", d.dir, err)
		}
		for _, c := range touches {
			c.Wait()
		}
	})
	if _, err := io.ReadFull(out, make([]byte, len("frozen\n"))); err != nil {
		tb.Fatalf("hangscenes: %s does not freeze: %v", d.dir, err)
	}
	for i := range n {
		c := exec.Command("touch", d.file(fmt.Sprintf("f%d", i)))
		if err := c.Start(); err != nil {
			tb.Fatal(err)
		}
		touches, pids = append(touches, c), append(pids, c.Process.Pid)
	}
	if err := inD(pids); err != nil {
		tb.Fatalf("hangscenes: %v do not wait for the frozen file system: %v", pids, err)
	}
	return d.dir, pids
}
