//go:build linux

package userlab

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// gdb's own stacks, given as ours, are right to the last frame; with the
// innermost caller of each taken out, as a frame-pointer walk would have it,
// none is.
func TestJudgeOnTheLab(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	l := Start(t, Few()...)
	var right, wrong []Verdict
	for _, p := range l.Processes {
		threads, err := p.Witness()
		if err != nil {
			t.Error(err)
			continue
		}
		checkWant(t, p, threads)
		v := Judge(p.Name, threads, asOurs(threads, false))
		w := Judge(p.Name, threads, asOurs(threads, true))
		v.Apart, w.Apart = p.Apart, p.Apart
		right, wrong = append(right, v), append(wrong, w)
	}
	t.Log("\n" + Table(right))
	if v := Total(right); v.StackPercent() != 100 || v.FramePercent() != 100 || v.Stacks < testneed.Length(40, 100) {
		t.Errorf("gdb against itself: %.2f %% of %d stacks, %.2f %% of frames", v.StackPercent(), v.Stacks, v.FramePercent())
	}
	if v := Total(wrong); v.StackPercent() > 2 {
		t.Errorf("without the innermost caller %.2f %% of stacks are valid\n%s", v.StackPercent(), Table(wrong))
	}
}

func asOurs(threads []Thread, loseCaller bool) []Stack {
	var all []Stack
	for _, th := range threads {
		fs := physical(th.Frames)
		if loseCaller && len(fs) > 1 {
			fs = append(fs[:1:1], fs[2:]...)
		}
		all = append(all, Stack{Tid: th.Tid, Frames: fs})
	}
	return all
}

// checkWant holds the lab itself against gdb, where gdb has names: a just in
// time compiler's it has not.
func checkWant(t *testing.T, p *Process, threads []Thread) {
	t.Helper()
	if p.Name == "java" || p.Name == "node" {
		return
	}
	for _, want := range p.Want {
		found := false
		for _, th := range threads {
			found = found || InOrder(th.Frames, want)
		}
		if !found {
			t.Errorf("%s: no stack has %q", p.Name, want)
		}
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	p := Start(t, "pipeline").Processes[0]
	if len(p.Members) < 4 {
		t.Fatalf("members %v, want sh and three more", p.Members)
	}
	p.Stop()
	p.Close()
	gone(t, p.Members)
}

func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		err := testtask.WaitFor(endTime, func() (bool, error) {
			s, err := stateOf(fmt.Sprintf("/proc/%d", pid))
			return errors.Is(err, os.ErrNotExist) || s == 'Z', nil
		})
		if err != nil {
			t.Errorf("process %d lives: %v", pid, err)
		}
	}
}

const dyingEnv = "USERLAB_DYING"

// A test process that is killed takes its actors along.
func TestActorsDieWithTheTest(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	if os.Getenv(dyingEnv) != "" {
		members := Start(t, "pipeline").Processes[0].Members
		for _, h := range []*Hang{NewHangs(t).StartNested(t, "abba", []int{77, 78, 79}), NewHangs(t).Start(t, Glibc, "traced")} {
			members = append(members, h.Members...)
		}
		fmt.Println("members", strings.Trim(fmt.Sprint(members), "[]"))
		select {}
	}
	testneed.Root(t) // as NewHangs does
	cmd := exec.Command(os.Args[0], "-test.run=^TestActorsDieWithTheTest$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), dyingEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); pids == nil && lines.Scan(); {
		if list, ok := strings.CutPrefix(lines.Text(), "members "); ok {
			for _, f := range strings.Fields(list) {
				pid, _ := strconv.Atoi(f)
				pids = append(pids, pid)
			}
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if len(pids) < 12 {
		t.Fatalf("the other test process has made %v", pids)
	}
	gone(t, pids)
}
