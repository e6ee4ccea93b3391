//go:build linux && (amd64 || arm64)

package hanglab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/hangscenes"
	"stackshot/internal/screen"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// TestSaved: of each case, among all of them at once and alone, the verdict says what is to be said
// and no more, and the first screen names the culprit. The capture of all was made once, by
// TestHangLabSaved of package snapshot (see docs/testing.md).
func TestSaved(t *testing.T) {
	snap, casts := saved(t)
	_, together := judgedOf(snap)
	of := map[int]string{} // case by pid
	for name, cast := range casts {
		for _, p := range cast {
			of[p.Pid] = name
		}
	}
	names := map[string]bool{}
	for _, c := range Cases() {
		if names[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		names[c.Name] = true
		if c.Alone {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			r := &Running{Case: c, Cast: casts[c.Name]}
			if err := c.complete(r.Cast); err != nil {
				t.Fatal(err)
			}
			alone := *snap
			alone.Tasks = slices.DeleteFunc(slices.Clone(snap.Tasks), func(task *kcdata.Task) bool {
				name, plays := of[int(task.ID)]
				return plays && name != c.Name
			})
			v, verdict := judgedOf(&alone)
			for _, err := range slices.Concat(Check(together, r), Check(verdict, r), onScreen(r, &alone, v)) {
				t.Error(err)
			}
		})
	}
}

func saved(t *testing.T) (*kcdata.Snapshot, map[string]Cast) {
	t.Helper()
	packed, err := os.ReadFile("testdata/cases.kcdata.zst")
	if err != nil {
		t.Fatal(err)
	}
	plain, _, err := kcdata.Unwrap(packed, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := kcdata.ParseSnapshot(plain)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/cases.json")
	var casts map[string]Cast
	if err == nil {
		err = json.Unmarshal(text, &casts)
	}
	if err != nil {
		t.Fatal(err)
	}
	return snap, casts
}

func judgedOf(snap *kcdata.Snapshot) (*waitgraph.Verdict, *Verdict) {
	v := waitgraph.Judge(waits.Of(snap), waitgraph.Options{MinWait: 200 * time.Millisecond})
	return v, Judged(v)
}

// onScreen says what is wrong with the first screen of a case: in a terminal of 80 columns and
// 24 lines it names, by pid or tid, somebody of the deadlock, and every culprit. What the verdict does not
// find it does not call stuck.
func onScreen(r *Running, snap *kcdata.Snapshot, v *waitgraph.Verdict) (wrong []error) {
	var b bytes.Buffer
	if err := screen.Text(&b, snap, screen.Options{Verdict: v, Width: 80, Height: 24, File: "file.kcdata.zst"}); err != nil {
		return []error{err}
	}
	named := hangscenes.Named(b.String())
	is := func(role string) bool { return named[r.Cast[role].Pid] || named[r.Cast[role].Tid] }
	if len(r.Cycle) > 0 && !r.Probably && !r.MayCycle && !is(r.Cycle[0]) && !is(r.Cycle[1]) {
		wrong = append(wrong, fmt.Errorf("the first screen does not name the deadlock of %v", r.Cycle))
	}
	for _, k := range r.Culprits {
		if !is(k.Role) {
			wrong = append(wrong, fmt.Errorf("the first screen does not name %s %+v", k.Role, r.Cast[k.Role]))
		}
	}
	if brief := screen.Brief(snap, v); v.Hangs() != (strings.HasPrefix(brief, "STUCK: ") || strings.HasPrefix(brief, "STOPPED: ")) {
		wrong = append(wrong, fmt.Errorf("hangs: %v; the first screen begins with %q", v.Hangs(), brief))
	}
	if lines := bytes.Count(b.Bytes(), []byte("\n")); lines > 24 {
		wrong = append(wrong, fmt.Errorf("the first screen has %d lines", lines))
	}
	if len(wrong) > 0 {
		wrong = append(wrong, fmt.Errorf("the first screen:\n%s", b.String()))
	}
	return wrong
}
