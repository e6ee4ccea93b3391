//go:build linux && (amd64 || arm64)

package testtask

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

// What a crowd announces is every thread of it once, between whatever else a console
// says, and each is what /proc has.
func TestAnnounce(t *testing.T) {
	testneed.Live(t)
	f := Start(t, Crowd(200)...)
	var out bytes.Buffer
	if err := f.Announce(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split("boot\nACTORSNOT 1\n"+out.String()+"Kernel panic\n", "\n")
	actors, err := ReadActors(lines)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]Actor{}
	for _, a := range actors {
		got[a.Tid] = a
	}
	n := 0
	for i := range f.Children {
		c := &f.Children[i]
		n += len(c.Tids)
		for _, tid := range c.Tids {
			dir := fmt.Sprintf("/proc/%d/task/%d", c.Pid, tid)
			a := got[tid]
			st, serr := readStat(dir)
			stack, kerr := readStack(dir)
			if a.Pid != c.Pid || a.Comm != c.Want.Comm || serr != nil || kerr != nil {
				t.Errorf("%v, thread %d: announced %+v (%v, %v)", c, tid, a, serr, kerr)
			}
			if err := a.Check(st.state, stack); err != nil {
				t.Errorf("%v, thread %d: %v", c, tid, err)
			}
			if len(a.Functions) != len(c.Want.Of(c.Pid, tid).Stack) {
				t.Errorf("%v, thread %d: functions %q", c, tid, a.Functions)
			}
		}
	}
	if len(got) != n || len(actors) != n {
		t.Errorf("%d lines for %d threads, want %d", len(actors), len(got), n)
	}
	for i, line := range lines {
		if len(line) > announced {
			t.Errorf("line of %d bytes", len(line))
		}
		if strings.HasPrefix(line, actorsWord+" ") {
			if _, err := ReadActors(slices.Delete(slices.Clone(lines), i, i+1)); err == nil {
				t.Errorf("line %q was not missed", line)
			}
		}
	}
	t.Logf("%d threads in %d bytes", n, out.Len())
}

// An actor in another state, or elsewhere, is not the one that was announced.
func TestActorCheck(t *testing.T) {
	a := Actor{State: 'D', Functions: []string{"pipe_release.isra.0", "do_exit"}}
	stack := []string{"__schedule", "pipe_release", "fput", "do_exit.cold"}
	if err := a.Check('D', stack); err != nil {
		t.Error(err)
	}
	slices.Reverse(stack)
	if a.Check('S', stack) == nil || a.Check('D', stack) == nil || a.Check('D', nil) == nil {
		t.Error("another state, the stack upside down or none: not seen")
	}
}

func FuzzReadActors(f *testing.F) {
	f.Add("ACTORS 12 S \"a b\\n\" pipe_read 12,14-16\nACTORS READY 4")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		all, err := ReadActors(strings.Split(text, "\n"))
		if err != nil && all != nil {
			t.Errorf("%d threads and %v", len(all), err)
		}
	})
}
