package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"stackshot/internal/foreign"
	"stackshot/internal/hanglab"
	"stackshot/internal/hangscenes"
	"stackshot/internal/symbol"
	"stackshot/internal/symbolize"
	"stackshot/internal/testneed"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// labMinWait is --min-wait in the tests of the laboratory.
const labMinWait = 200 * time.Millisecond

// hanging starts cases of the laboratory, and captures them when all have waited for a while. The
// verdict is right.
func hanging(t *testing.T, with func(*hanglab.Case) bool) (all []*hanglab.Running, file []byte) {
	t.Helper()
	lab, s := hanglab.New(t), session(t, Options{})
	for _, c := range hanglab.Cases() {
		if with(c) {
			all = append(all, lab.Start(t, c))
		}
	}
	for _, r := range all {
		r.Age(labMinWait + 50*time.Millisecond)
	}
	_, taken, err := takeStopped(t, s, Request{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := kcdata.ParseSnapshot(taken.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	files := foreign.New(foreign.Options{})
	defer files.Close()
	res := symbol.NewResolver(files, symbol.Options{Local: true, Limit: slow(time.Minute)}).Resolve(t.Context(), snap.Tasks)
	if file, _, err = symbolize.Rewrite(taken.Bytes(), snap, tables(res)); err != nil {
		t.Fatal(err)
	}
	if snap, err = kcdata.ParseSnapshot(file); err != nil {
		t.Fatal(err)
	}
	v := hanglab.Judged(waitgraph.Judge(waits.Of(snap), waitgraph.Options{MinWait: labMinWait}))
	for _, r := range all {
		for _, err := range hanglab.Check(v, r) {
			t.Error(err)
		}
	}
	return all, file
}

// TestHangLabSaved makes what internal/hanglab keeps of one capture of all cases, and judges in tier unit.
func TestHangLabSaved(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	testneed.Slow(t)
	dir := os.Getenv("STACKSHOT_HANGLAB")
	if dir == "" {
		t.Skip("makes internal/hanglab/testdata, where STACKSHOT_HANGLAB says")
	}
	requireBPF(t)
	all, file := hanging(t, func(c *hanglab.Case) bool { return c.Lacks() == "" && !c.Alone })
	casts, keep := map[string]hanglab.Cast{}, hangscenes.Standing{}
	for _, r := range all {
		casts[r.Name] = r.Cast
		for _, p := range r.Cast {
			keep.Pids = append(keep.Pids, p.Pid)
		}
	}
	for line := range strings.Lines(slurp(t, "/proc/self/cgroup")) { // which is of this machine
		if top, _, _ := strings.Cut(strings.TrimSpace(line[strings.LastIndex(line, ":")+1:])[1:], "/"); top != "" {
			file = regexp.MustCompile("/"+regexp.QuoteMeta(top)+`(/[\w.-]+)*`).ReplaceAllFunc(file, func(path []byte) []byte {
				return append([]byte("/"), bytes.Repeat([]byte("x"), len(path)-1)...)
			})
		}
	}
	file, err := keep.Trim(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(casts)
	var packed bytes.Buffer
	if err := errors.Join(err, kcdata.Compress(&packed, file, kcdata.EnvelopeZstd), os.WriteFile(filepath.Join(dir, "cases.json"), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "cases.kcdata.zst"), packed.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
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
	inside := map[string]bool{"abba-glibc": true, "abba-nested": true, "pi-chain": true, "cycle-of-three": true,
		"join": true, "pipe-mutex": true, "inode-rwsem": true, "stopped-child": true, "vfork-parent": true, "holder-traced": true,
		"unix-cycle": true, "tcp4-ring": true, "contained-cycle": true, "futex-and-pipe": true, "flock-convoy": true, "fuse-read": true}
	if all, _ := hanging(t, func(c *hanglab.Case) bool { return inside[c.Name] }); len(all) != len(inside) {
		t.Fatalf("%d cases of %d", len(all), len(inside))
	}
}
