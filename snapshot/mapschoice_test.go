package snapshot

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

// manyMaps maps 5,000 pages of code, each by itself, and sleeps; Python is first
// and the C library, in which it sleeps, last in its list of mappings.
const manyMaps = `
import mmap, sys, time
keep = [mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC) for _ in range(5000)]
sys.stdout.write("ready\\n"); sys.stdout.flush()
time.sleep(300)
`

// maxMappings is how many of a task a file has.
const maxMappings = 4096

// A process with more executable mappings than a file holds keeps those that its
// frames lie in, its stack is as long as it is, and the rest is counted.
func TestMoreMappingsThanAreKept(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	if userlab.Guest() {
		t.Skip("needs Python: a guest has none")
	}
	testneed.Program(t, "python3")
	child := exec.Command("python3", "-c", manyMaps)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	if _, err := fmt.Fscanln(out); err != nil && err.Error() != "expected newline" {
		t.Fatal(err)
	}
	pid := child.Process.Pid
	asleep := func() (bool, error) {
		return strings.Contains(slurp(t, fmt.Sprintf("/proc/%d/wchan", pid)), "nanosleep"), nil
	}
	if err := testtask.WaitFor(10*time.Second, asleep); err != nil {
		t.Fatal(err)
	}
	executable := 0
	for m, err := range procfs.ParseMaps([]byte(slurp(t, fmt.Sprintf("/proc/%d/maps", pid))), procfs.PermExec) {
		if executable++; err != nil || m.End == 0 {
			t.Fatal(err)
		}
	}
	_, snap, _ := takeWhole(t, Options{Engine: EnginePull}, Request{Pids: []int{pid}})
	task := tasksByID(snap)[uint64(pid)]
	if len(task.Mappings) != maxMappings || executable < 5000 {
		t.Errorf("%d mappings of %d are in the file", len(task.Mappings), executable)
	}
	want := fmt.Sprintf("maps: %d executable mappings are left out: a task has at most %d in the file", executable-maxMappings, maxMappings)
	for i, note := range task.EnrichFailed {
		// Each mapping is a file of its own, and all files together have a limit of time.
		if i == 0 && note != want || i > 0 && !strings.Contains(note, "not read") {
			t.Errorf("%q, want %q", task.EnrichFailed, want)
		}
	}
	if len(task.EnrichFailed) == 0 {
		t.Errorf("nothing is said, want %q", want)
	}
	th := task.Threads[0]
	if len(th.User) < 10 || th.UserWalk.Flags&kcdata.UserComplete == 0 {
		t.Errorf("%d frames, walk %+v", len(th.User), th.UserWalk)
	}
	for _, pc := range th.User {
		if _, ok := task.MappingAt(pc); !ok {
			t.Errorf("the mapping of frame %#x is not in the file", pc)
		}
	}
}
