//go:build linux && (amd64 || arm64)

package hangscenes_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/hangscenes"
	"stackshot/internal/screen"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// saved reads the snapshot of a scene that was made once (see docs/testing.md).
func saved(t testing.TB, scene string) *kcdata.Snapshot {
	t.Helper()
	snap, err := kcdata.ParseSnapshot(plain(t, scene))
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func plain(t testing.TB, scene string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", scene+".kcdata.zst"))
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 60<<10 {
		t.Errorf("%s: %d bytes", scene, len(b))
	}
	plain, _, err := kcdata.Unwrap(b, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// all are the scenes with a snapshot: that of 5,000 threads would be too big to keep.
func all() []*hangscenes.Scene {
	return slices.DeleteFunc(hangscenes.All(), func(s *hangscenes.Scene) bool { return s.Name == "thread-leak" })
}

// shown is the first screen of a saved scene, in 80x24. TestEverySize of screen has the other sizes.
func shown(t testing.TB, snap *kcdata.Snapshot, colour bool) string {
	t.Helper()
	var b bytes.Buffer
	err := screen.Text(&b, snap, screen.Options{Verdict: waitgraph.Judge(waits.Of(snap), waitgraph.Options{}),
		Width: 80, Height: 24, Color: colour, File: "stackshot-db7-20261123T120000.000Z.kcdata.zst"})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestScreens: the first screen of each scene is the one that was read and found right.
func TestScreens(t *testing.T) {
	for _, scene := range all() {
		golden.Want(t, "testdata/screens/"+scene.Name+".txt", []byte(shown(t, saved(t, scene.Name), false)))
	}
}

// TestOneRule: the first screen calls somebody stuck exactly where `hang` finds something.
func TestOneRule(t *testing.T) {
	for _, scene := range all() {
		snap := saved(t, scene.Name)
		v := waitgraph.Judge(waits.Of(snap), waitgraph.Options{})
		brief := screen.Brief(snap, v)
		if stuck := strings.HasPrefix(brief, "STUCK: ") || strings.HasPrefix(brief, "STOPPED: "); stuck != v.Hangs() || scene.Healthy && stuck {
			t.Errorf("%s: hangs: %v; the first screen begins with %q", scene.Name, v.Hangs(), brief)
		}
	}
}

// TestCutScenes: a file that breaks off never says that nothing hangs, that nothing was stopped, or how
// exact its picture is without knowing.
func TestCutScenes(t *testing.T) {
	allClear, exact := regexp.MustCompile(`(?i)nothing (hangs|is stuck)`), regexp.MustCompile(`nothing was stopped|picture (not )?exact`)
	for _, scene := range all() {
		whole := plain(t, scene.Name)
		for n := 64; n < len(whole); n += len(whole) / 40 {
			snap, err := kcdata.ParseSnapshot(whole[:n])
			if err == nil || !snap.Partial {
				t.Fatalf("%s cut to %d of %d bytes: %v, it breaks off: %v", scene.Name, n, len(whole), err, snap.Partial)
			}
			v := waitgraph.Judge(waits.Of(snap), waitgraph.Options{})
			says := append(verdict.For(snap, v).Summary(verdict.Findings(v, nil), ""), append(v.Waits.Limits, shown(t, snap, false))...)
			text := strings.Join(says, "\n")
			if allClear.MatchString(text) || exact.MatchString(text) && !snap.HasCapture {
				t.Fatalf("%s cut to %d of %d bytes: %s", scene.Name, n, len(whole), text)
			}
		}
	}
}

// TestScreenshots: the pictures of the README are what a terminal shows of three scenes.
func TestScreenshots(t *testing.T) {
	for _, scene := range []string{"slow-disk", "mutexes", "memory-limit"} {
		text := "$ stackshot\n" + shown(t, saved(t, scene), true)
		golden.Want(t, "../../docs/screens/"+scene+".svg", svg(text, 80))
	}
}

// TestSavedSnapshots: the files have nobody of the machine on which they were made.
func TestSavedSnapshots(t *testing.T) {
	for _, scene := range all() {
		snap := saved(t, scene.Name)
		if snap.Hostname != "db7" || snap.BootArgs != "" || len(snap.Tasks) < 10 {
			t.Errorf("%s: host %q, boot arguments %q, %d tasks", scene.Name, snap.Hostname, snap.BootArgs, len(snap.Tasks))
		}
		for _, task := range snap.Tasks {
			if program := slices.Concat(task.Cmdline, []string{""})[0]; program != "" &&
				!strings.Contains(program, "scenes.") && program != "java" && !strings.Contains(program, "ends.c") && task.Name != "dsp" && task.ID > 1 {
				t.Errorf("%s: %q", scene.Name, program)
			}
		}
	}
}
