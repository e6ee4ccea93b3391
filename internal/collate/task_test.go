package collate

import (
	"errors"
	"stackshot/internal/capture"
	"stackshot/kcdata"
	"strings"
	"testing"
)

// A kernel stack that the stop cut short has the flag for either stack too.
func TestTruncatedKernelStackInApplesFlags(t *testing.T) {
	w := kcdata.NewWriter(make([]byte, 1<<12))
	err := errors.Join(w.BeginContainer(kcdata.TypeTask, 7), w.BeginContainer(kcdata.TypeThread, 7),
		w.Struct(kcdata.TypeThreadSnapshot, &kcdata.ThreadSnapshot{ThreadID: 7, SSFlags: 0x4002}), w.EndContainer(7), w.EndContainer(7))
	if err != nil {
		t.Fatal(err)
	}
	task, err := openTask(nil, []capture.Part{{Pieces: [][]byte{w.Written()}}})
	if err != nil {
		t.Fatal(err)
	}
	if snap, err := kcdata.Record[kcdata.ThreadSnapshot](task.threads[0].snap.Item()); err != nil || snap.SSFlags != 0x4082 {
		t.Errorf("flags %#x, %v; want 0x4082", snap.SSFlags, err)
	}
}

// A sample whose thread is not in the file is named.
func TestSampleLost(t *testing.T) {
	c := &capture.Raw{Samples: []capture.Sample{
		{CPU: 3, Tid: 17, Tgid: 17, Comm: "gone"},
		{CPU: 1, Tid: 17, Tgid: 17, Comm: "gone"},
		{CPU: 2, Idle: true},
	}}
	newPlacer(c, nil, false).lost(c)
	if len(c.Warnings) != 2 || c.Warnings[0].Code != "sample_lost" || !strings.Contains(c.Warnings[0].Text, "CPU 1, thread 17 (gone)") ||
		!strings.Contains(c.Warnings[1].Text, "CPU 3") {
		t.Errorf("%+v", c.Warnings)
	}
}
