//go:build linux && (amd64 || arm64)

package hanglab

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/userlab"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// kernelCases wait for locks of the kernel, for other processes, and for a CPU.
func kernelCases() []*Case {
	// A scan of a stack cannot tell what is wanted of an rwsem.
	write := []waits.Kind{waits.RWSemWrite, waits.RWSem}
	behindOwner := func(name string, k testtask.Kind, kinds ...waits.Kind) *Case {
		return &Case{Name: name, start: actors(k), Culprits: []Culprit{culprit("owner", waitgraph.Asleep, "first", "second")},
			Waits: []Wait{{"first", kinds, "owner"}, {"second", kinds, "owner"}}}
	}
	return []*Case{
		behindOwner("pipe-mutex", testtask.MutexWait, waits.Mutex),
		behindOwner("inode-rwsem", testtask.InodeWait, write...),
		{Name: "mmap-lock", start: mmapLock, lacks: noFUSE, Read: true, Culprits: []Culprit{culprit("holder", waitgraph.InD, "reader")},
			Waits: []Wait{{"reader", []waits.Kind{waits.RWSemRead, waits.RWSem}, "holder"}}},
		{Name: "stopped-child", start: actors(testtask.StoppedChild), Culprits: []Culprit{culprit("child", waitgraph.Stopped, "parent")},
			Waits: []Wait{{"parent", []waits.Kind{waits.ChildEnd}, "child"}}},
		// A vfork child may work for as long as it likes, as another child may.
		{Name: "vfork-parent", start: actors(testtask.VforkParent), May: []string{"child"},
			Waits: []Wait{{"parent", []waits.Kind{waits.Vfork}, "child"}}},
		{Name: "hog", start: hog, Alone: true, lacks: oneCPU,
			Culprits: []Culprit{{"hog", []waitgraph.Reason{waitgraph.Running, waitgraph.MissedCPU}, []string{"behind"}}},
			Waits:    []Wait{{"behind", []waits.Kind{waits.CPU}, "hog"}}},
	}
}

// actors are the processes of a kind; the one without a name is the "parent".
func actors(k testtask.Kind) func(testing.TB, *Lab) Cast {
	return func(tb testing.TB, _ *Lab) Cast {
		cast := Cast{}
		for _, c := range testtask.Start(tb, k).Children {
			role := c.Role
			if role == "" {
				role = "parent"
			}
			cast[role] = userlab.Part{Pid: c.Pid, Tid: c.Pid, Inner: c.Pid}
		}
		return cast
	}
}

func mmapLock(tb testing.TB, l *Lab) Cast {
	holder := userlab.LockedMap(tb)
	reader := l.hangs.StartReader(tb, fmt.Sprintf("/proc/%d/maps", holder.Pid), "vfs_read")
	return Cast{"holder": {Pid: holder.Pid, Tid: holder.Pid, Inner: holder.Pid}, "reader": reader.Parts["reader"]}
}

// hogLife is how long the hog keeps its CPU at most: a capture, and several --min-wait, on a
// machine that runs other tests. The try's end is its end, too.
func hogLife() time.Duration {
	if testneed.Guest() {
		return 20 * time.Second
	}
	return 10 * time.Second
}

// hog keeps the last CPU, and somebody wants to run there.
func hog(tb testing.TB, _ *Lab) Cast {
	cpu := lastCPU()
	// Before the hog: it could not even begin after.
	behind := testtask.CPUHogs(tb, cpu, 1).Children[0]
	hog := testtask.FIFOHog(tb, cpu, hogLife()).Children[0]
	return Cast{"hog": {Pid: hog.Pid, Tid: hog.Pid, Inner: hog.Pid}, "behind": {Pid: behind.Pid, Tid: behind.Pid, Inner: behind.Pid}}
}

func lastCPU() int {
	b, _ := os.ReadFile("/sys/devices/system/cpu/online") // 0-3,5
	text := strings.TrimSpace(string(b))
	var cpu int
	fmt.Sscan(text[strings.LastIndexAny(text, "-,")+1:], &cpu)
	return cpu
}

func oneCPU() string {
	if lastCPU() == 0 {
		return "one CPU: the hog would keep the test from running"
	}
	return ""
}

func noFUSE() string {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return "this kernel has no FUSE (Debian's 6.1 has it as a module, and a guest has no modules)"
	}
	return ""
}
