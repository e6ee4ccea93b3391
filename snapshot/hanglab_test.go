package snapshot

import (
	"testing"
	"time"

	"stackshot/internal/hanglab"
	"stackshot/internal/testneed"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// TestHangLabAlone is TestHangLab of cmd/stackshot for guests, where each run of the
// command takes ten seconds: the session is opened once, and the verdict is asked for
// without the command.
func TestHangLabAlone(t *testing.T) {
	if !testneed.Guest() {
		t.Skip("TestHangLab of cmd/stackshot does it here")
	}
	requireBPF(t)
	const minWait = 200 * time.Millisecond
	lab, s := hanglab.New(t), session(t, Options{})
	for _, c := range hanglab.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			for _, err := range lab.Try(t, c, minWait, func() *hanglab.Verdict {
				_, file, err := takeStopped(t, s, Request{})
				if err != nil {
					t.Fatal(err)
				}
				snap, err := kcdata.ParseSnapshot(file.Bytes())
				if err != nil {
					t.Fatal(err)
				}
				named(t, snap, file.Bytes())
				return hanglab.Judged(waitgraph.Judge(waits.Of(snap), waitgraph.Options{MinWait: minWait}))
			}) {
				t.Error(err)
			}
		})
	}
}
