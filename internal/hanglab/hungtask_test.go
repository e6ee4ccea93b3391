//go:build linux && (amd64 || arm64)

package hanglab

import (
	"errors"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// INFO: task tt-mutex-wait:158 is blocked on a mutex likely owned by task tt-mutex-wait:160.
// INFO: task a:1 <writer> blocked on an rw-semaphore likely owned by task b:2 <writer>
var likelyOwned = regexp.MustCompile(`INFO: task [^ :]+:(\d+) .*blocked on an? [a-z-]+,? likely owned by task [^ :]+:(\d+)`)

// TestHungTaskAgrees: what the kernel itself says of who has the locks that its tasks in D
// wait for is what the cases say. In a guest, whose settings are nobody's.
func TestHungTaskAgrees(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	if !testneed.Guest() {
		t.Skip("changes kernel.hung_task_timeout_secs: in guests alone")
	}
	if newest := kernelAtLeast(t, 6, 17); !newest {
		t.Skip("this kernel's hung_task names no owner (6.16 does of mutexes, 6.17 of rwsems)")
	}
	for name, value := range map[string]string{"hung_task_timeout_secs": "2", "hung_task_check_interval_secs": "1", "hung_task_warnings": "-1"} {
		path := "/proc/sys/kernel/" + name
		old, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(value), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.WriteFile(path, old, 0) })
	}
	f := testtask.Start(t, testtask.MutexWait, testtask.InodeWait)
	want := map[int]int{}
	for _, k := range []testtask.Kind{testtask.MutexWait, testtask.InodeWait} {
		for _, role := range []string{"first", "second"} {
			want[f.One(k, role).Pid] = f.One(k, "owner").Pid
		}
	}
	said := map[int]int{}
	err := testtask.WaitFor(60*time.Second, func() (bool, error) {
		log, err := kernelLog()
		for _, m := range likelyOwned.FindAllStringSubmatch(log, -1) {
			waiter, _ := strconv.Atoi(m[1])
			owner, _ := strconv.Atoi(m[2])
			said[waiter] = owner
		}
		return len(said) >= len(want), err
	})
	for waiter, owner := range want {
		if said[waiter] != owner {
			t.Errorf("hung_task: %d waits for %d, want %d (%v)", waiter, said[waiter], owner, err)
		}
	}
	if t.Failed() {
		log, _ := kernelLog()
		t.Log(log)
	}
}

func kernelAtLeast(t *testing.T, major, minor int) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	m := regexp.MustCompile(`^(\d+)\.(\d+)`).FindSubmatch(b)
	if err != nil || m == nil {
		t.Fatalf("release %q: %v", b, err)
	}
	a, _ := strconv.Atoi(string(m[1]))
	i, _ := strconv.Atoi(string(m[2]))
	return a > major || a == major && i >= minor
}

// kernelLog is all that the kernel still has of its log.
func kernelLog() (string, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var all []byte
	line := make([]byte, 8192)
	for {
		n, err := unix.Read(fd, line)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return string(all), nil
		case errors.Is(err, unix.EPIPE): // overwritten meanwhile
		case err != nil:
			return "", err
		default:
			all = append(all, line[:n]...)
		}
	}
}
