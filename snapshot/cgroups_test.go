package snapshot

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/capture"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// Each task's control group is in the file, with all of its tasks and threads, whatever engine took it
// and also redacted; /proc tells the same of this process.
func TestCgroupsOfTheFile(t *testing.T) {
	testneed.Live(t)
	for i, name := range []string{EngineAuto, EngineProcfs} {
		redact := i > 0
		s := session(t, Options{Engine: name, Redact: redact})
		_, snap := s.mustTake(t)
		t.Run(name, func(t *testing.T) { checkCgroups(t, snap) })
	}
}

func checkCgroups(t *testing.T, s *kcdata.Snapshot) {
	taken := s.CgroupsTaken
	if taken == nil {
		t.Fatal("nobody looked at control groups")
	}
	if int(taken.Groups+taken.Above-taken.Rest) != len(s.Cgroups) || int(taken.Tasks) > len(s.Tasks) || taken.AtNs < s.Machine.MonotonicNs {
		t.Errorf("%d groups, %d tasks: %+v", len(s.Cgroups), len(s.Tasks), taken)
	}
	tasks := uint32(0)
	for _, g := range s.Cgroups {
		tasks += g.Tasks
		if g.Above != nil && (!strings.HasPrefix(g.Path, g.Above.Path) || g.Above.Path == g.Path) {
			t.Errorf("%q is in %q", g.Path, g.Above.Path)
		}
		if g.Outcome == kcdata.CgroupRead && g.Present&kcdata.CgroupHasID == 0 || g.Path == "" {
			t.Errorf("%+v", g)
		}
	}
	if tasks > taken.Tasks || tasks+taken.Unknown == 0 {
		t.Errorf("%d tasks in groups: %+v", tasks, taken)
	}
	of := s.MemoryCgroups()
	i := slices.IndexFunc(s.Tasks, func(task *kcdata.Task) bool { return int(task.ID) == os.Getpid() })
	if i < 0 {
		t.Fatal("this process is not in the file")
	}
	own := s.Tasks[i]
	text := slurp(t, "/proc/self/cgroup")
	if g := of[own]; taken.Late+taken.Rest+taken.Unknown == 0 && len(text) > 0 &&
		(g == nil || g.Threads < uint32(len(own.Threads)) || !strings.Contains(text, ":"+g.Path+"\n")) {
		t.Errorf("this process is in %+v, of\n%s", g, text)
	}
}

// A task counts once, with the threads of all of its parts; the idle task has no group.
func TestMembers(t *testing.T) {
	part := func(tgid int32, threads uint32) capture.Part {
		return capture.Part{Item: workqueue.Item{Tgid: tgid}, Threads: threads}
	}
	got := members(&capture.Raw{Recorded: []capture.Part{part(capture.IdleTask, 2), part(7, 100), part(9, 1), part(7, 20)}})
	if fmt.Sprint(got) != "[{7 120} {9 1}]" {
		t.Error(got)
	}
}

// What is not known is said, with a name; a group that was removed is no loss.
func TestCgroupsUnread(t *testing.T) {
	c := &capture.Cgroups{Taken: kcdata.LinuxCgroupsTaken{Read: 3, Gone: 2}}
	if got := notRead(c); got != "" {
		t.Error(got)
	}
	c.Taken.Denied, c.Taken.Rest = 1, 40
	c.Groups = []capture.Cgroup{{Path: "/x", LinuxCgroup: kcdata.LinuxCgroup{Outcome: kcdata.CgroupGone}},
		{Path: "/y", LinuxCgroup: kcdata.LinuxCgroup{Outcome: kcdata.CgroupDenied, Errno: 13}}}
	if got, want := notRead(c), "of some control groups the memory is not known: 1 may not be read, 40 more than the file has (/y: permission denied)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
