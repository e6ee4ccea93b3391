package testvm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// Driven is a guest that runs a package's test binary and is driven from outside, step by
// step: a panic is caused or awaited, memory dumped, a capture kernel heard.
type Driven struct {
	*Guest
	Program *Outcome // of the test binary
	Capture *Outcome // of the program in the capture kernel; nil: Config.Capture was
}

// Drive boots t's guest and lets it run. Files of its program go to OutDir, by default
// LogDir/out; those of the capture kernel's program to LogDir/capture. The caller closes
// the guest. A panic ends it unless Config.Append has panic=0, which leaves it standing
// for a dump, or a capture kernel is loaded.
func Drive(ctx context.Context, b *Builder, t Test) (*Driven, error) {
	if err := os.MkdirAll(t.Guest.LogDir, 0o755); err != nil {
		return nil, err
	}
	d := &Driven{Program: newOutcome("program", first(t.OutDir, filepath.Join(t.Guest.LogDir, "out")))}
	t.Guest.OnFrame = d.Program.frame
	if t.Guest.Capture != nil {
		d.Capture = newOutcome("capture kernel's program", filepath.Join(t.Guest.LogDir, "capture"))
		c := *t.Guest.Capture
		c.OnFrame = d.Capture.frame
		t.Guest.Capture = &c
	}
	t.Guest.Initrd = filepath.Join(t.Guest.LogDir, "initrd")
	if err := b.Initrd(ctx, &t, t.Guest.Initrd); err != nil {
		return nil, err
	}
	g, err := Start(ctx, t.Guest)
	// When Start returns QEMU has read it.
	if rerr := os.Remove(t.Guest.Initrd); err != nil {
		return nil, errors.Join(err, rerr)
	}
	d.Guest, d.Program.over = g, g.Done()
	if d.Capture != nil {
		d.Capture.over = g.Done()
	}
	return d, nil
}
