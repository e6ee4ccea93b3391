package snapshot

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
)

// TestWholeStackWithoutEnvironment: of a main thread's short stack all frames are
// taken, and nothing of what the kernel has put above them.
func TestWholeStackWithoutEnvironment(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	const secret = "STACKSHOT_TEST_SECRET=of-the-environment"
	cmd := exec.Command("sleep", "1000")
	cmd.Env = append(os.Environ(), secret)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	pid := cmd.Process.Pid
	awaitComm(t, pid, "sleep")
	const startStack = 28 - 3 // "startstack" of the fields behind the name (proc(5))
	start, err := strconv.ParseUint(statFields(t, fmt.Sprintf("/proc/%d", pid))[startStack], 10, 64)
	if err != nil || start == 0 {
		t.Fatal(start, err)
	}
	for _, engineName := range userEngines() {
		s := withUserSide(t, Options{Engine: engineName})
		th := userThread(t, s, pid, pid)
		if len(th.UserBytes) != 1 || th.Syscall == nil {
			t.Fatalf("%s: %d pieces of the stack, call %+v", engineName, len(th.UserBytes), th.Syscall)
		}
		b := th.UserBytes[0]
		if b.Addr != th.Syscall.SP || b.Addr+uint64(len(b.Data)) != start+16 {
			t.Errorf("%s: %d bytes at %#x; the stack pointer is %#x and the arguments begin at %#x", engineName, len(b.Data), b.Addr, th.Syscall.SP, start)
		}
		if bytes.Contains(b.Data, []byte(secret)) {
			t.Errorf("%s: the environment was taken", engineName)
		}
	}
}

// awaitComm waits until a process has execed.
func awaitComm(t *testing.T, pid int, comm string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if st, err := (procfs.FS{}).Stat(pid); err == nil && st.Comm == comm {
			time.Sleep(10 * time.Millisecond) // and is in its own code
			return
		}
	}
	t.Fatalf("process %d did not become %s", pid, comm)
}
