package snapshot

import (
	"os"
	"syscall"
	"testing"
	"time"

	"stackshot/internal/hanglab"
	"stackshot/internal/testneed"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// labMinWait is --min-wait in the tests of the laboratory.
const labMinWait = 200 * time.Millisecond

// judged is the verdict on one capture, without the command.
func judged(t *testing.T, s *Session) *hanglab.Verdict {
	t.Helper()
	_, v := taken(t, s)
	return v
}

// taken is one capture, and the verdict on it.
func taken(t *testing.T, s *Session) (*kcdata.Snapshot, *hanglab.Verdict) {
	t.Helper()
	_, file, err := takeStopped(t, s, Request{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := kcdata.ParseSnapshot(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	named(t, snap, file.Bytes())
	return snap, hanglab.Judged(waitgraph.Judge(waits.Of(snap), waitgraph.Options{MinWait: labMinWait}))
}

// TestHangLabAlone: of each case of the laboratory, alone, the verdict says what is to be
// said and no more, and the first screen names the culprit. In short every eighth case, in long every third: all of them are judged together
// by TestHangLabTogether. With STACKSHOT_HANGLAB=all (make long) each.
func TestHangLabAlone(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	testneed.Slow(t)
	requireBPF(t)
	lab, s := hanglab.New(t), session(t, Options{})
	every := testneed.Length(8, 3)
	if os.Getenv("STACKSHOT_HANGLAB") == "all" {
		every = 1
	}
	for i, c := range hanglab.Cases() {
		if i%every != 0 {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			s := s
			if c.Alone { // nobody waits a second for its CPU: the fair server may come in between
				s = session(t, Options{ArrivalBudget: 80 * time.Millisecond})
			}
			for _, err := range lab.Try(t, c, labMinWait, func(r *hanglab.Running) (*hanglab.Verdict, []error) {
				snap, v := taken(t, s)
				return v, onScreen(r, snap)
			}) {
				t.Error(err)
			}
		})
	}
}

// TestHangLabInAPidNamespace: taken from inside a pid namespace, the file has the same
// verdict in that namespace's numbers, of its own threads and of those of deeper ones.
func TestHangLabInAPidNamespace(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	testneed.Slow(t)
	if !inChild(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}) {
		return
	}
	hideProc(t)
	lab, s := hanglab.New(t), session(t, Options{})
	inside := map[string]bool{"abba-glibc": true, "abba-nested": true, "pi-chain": true, "cycle-of-three": true,
		"join": true, "pipe-mutex": true, "inode-rwsem": true, "stopped-child": true, "vfork-parent": true, "holder-traced": true,
		"unix-cycle": true, "tcp4-ring": true, "contained-cycle": true, "futex-and-pipe": true, "flock-convoy": true, "fuse-read": true}
	var all []*hanglab.Running
	for _, c := range hanglab.Cases() {
		if inside[c.Name] {
			all = append(all, lab.Start(t, c))
		}
	}
	if len(all) != len(inside) {
		t.Fatalf("%d cases of %d", len(all), len(inside))
	}
	for _, r := range all {
		r.Age(labMinWait + 50*time.Millisecond)
	}
	v := judged(t, s)
	for _, r := range all {
		for _, err := range hanglab.Check(v, r) {
			t.Error(err)
		}
	}
}
