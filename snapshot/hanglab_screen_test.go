package snapshot

import (
	"bytes"
	"fmt"

	"stackshot/internal/hanglab"
	"stackshot/internal/hangscenes"
	"stackshot/internal/screen"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// onScreen says what is wrong with the first screen of a case: in a terminal of 80 columns and
// 24 lines it names, by pid or tid, somebody of the deadlock, and every culprit.
func onScreen(r *hanglab.Running, snap *kcdata.Snapshot) (wrong []error) {
	alone, _ := hangscenes.Alone(snap)
	var b bytes.Buffer
	v := waitgraph.Judge(waits.Of(alone), waitgraph.Options{MinWait: labMinWait})
	if err := screen.Text(&b, alone, screen.Options{Verdict: v, Width: 80, Height: 24, File: "file.kcdata.zst"}); err != nil {
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
	if lines := bytes.Count(b.Bytes(), []byte("\n")); lines > 24 {
		wrong = append(wrong, fmt.Errorf("the first screen has %d lines", lines))
	}
	if len(wrong) > 0 {
		wrong = append(wrong, fmt.Errorf("the first screen:\n%s", b.String()))
	}
	return wrong
}
