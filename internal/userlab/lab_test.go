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
