package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/account"
	"stackshot/internal/publish"
	"stackshot/internal/report"
	"stackshot/internal/screen"
	"stackshot/internal/show"
	"stackshot/internal/topology"
	"stackshot/internal/urgency"
	"stackshot/internal/verdict"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// deliver writes the file, then shows the report (C1).
func (t *take) deliver(ctx context.Context, d *publish.Destination, e kcdata.Envelope, shot *shot) error {
	file := t.save(ctx, d, e, shot.plain)
	urgency.End() // the file is urgent, the names are not
	reportErr := t.present(ctx, d, file, shot.plain, t.quiet)
	where := file.where
	if file.err == nil && !t.quiet && !t.json && where != stdoutName {
		say(os.Stderr, "%s", wrote(where, file.size, int64(len(shot.plain)), terminalOptions(os.Stderr).Width))
	}
	var jsonErr error
	if t.json {
		jsonErr = writeTakeJSON(os.Stdout, where, 0, shot.res)
	}
	all := errors.Join(file.err, reportErr, jsonErr, t.incomplete(shot.res))
	if all != nil && where != "" {
		return partial(all)
	}
	return all
}

// present shows a capture and waits for its file. A target that is slow may never have the file: the
// commands that name it then come last. quiet: no progress is shown.
func (t *take) present(ctx context.Context, d *publish.Destination, file *saving, plain []byte, quiet bool) error {
	where, known := file.place()
	err := t.show(ctx, d, where, plain)
	late := t.late
	t.late = nil // it has the snapshot
	file.wait(quiet, forever)
	if known || err != nil || late == nil {
		return err
	}
	return unlessGone(late(file.where))
}

// saving is a file that is being written.
type saving struct {
	name  string // for people
	began time.Time
	done  chan struct{} // closed at the end; before that nothing below is read
	where string        // "" for nowhere
	size  int64         // bytes
	err   error
}

// place is where the file is, "" for nowhere; known is false while it is being written.
func (s *saving) place() (where string, known bool) {
	select {
	case <-s.done:
		return s.where, true
	default:
		return "", false
	}
}

// wait waits for the end, but not much longer than patience.
func (s *saving) wait(quiet bool, patience time.Duration) {
	select {
	case <-s.done:
		return // or the line would be there for a moment
	default:
	}
	defer progressOf(quiet, s.began, func() string { return "writing " + s.name })()
	select {
	case <-s.done:
	case <-time.After(patience):
	}
}

// Lengths of take.patience: the usual one, and that of whoever has to know where the file is.
const (
	targetPatience = 2 * time.Second
	forever        = time.Duration(math.MaxInt64)
)

// save compresses a snapshot and writes its file. It waits for a target that does not answer no
// longer than t.patience; after that the writing goes on beside the caller.
func (t *take) save(ctx context.Context, d *publish.Destination, e kcdata.Envelope, plain []byte) *saving {
	s := &saving{name: filepath.Base(d.Path), began: time.Now(), done: make(chan struct{})}
	packed := make(chan struct{})
	go func() {
		defer close(s.done)
		file, err := publish.Compress(plain, e)
		close(packed)
		if err == nil {
			defer file.Close()
			s.where, err = d.Save(ctx, file)
			s.size, _ = file.Size()
		}
		switch {
		case s.where == "":
			err = fmt.Errorf("%w\nthe snapshot is lost", err)
		case err != nil:
			err = fmt.Errorf("%w\nthe snapshot is in %s instead (%s)", err, s.where, humanBytes(s.size))
		}
		s.err = err
	}()
	<-packed // our own work
	s.wait(t.quiet, t.patience)
	return s
}

// show names the user stacks of a capture in memory and writes the report; where is the file's
// place, "" for none. It is no error if the reader left early. A signal ends the wait for a slow one.
func (t *take) show(ctx context.Context, d *publish.Destination, where string, plain []byte) error {
	if t.quiet || t.json {
		return nil
	}
	if err := memoryFor(len(plain)); err != nil {
		return err
	}
	s, err := kcdata.ParseSnapshot(plain)
	if err != nil {
		return fmt.Errorf("read back the snapshot: %w", err)
	}
	skipped := t.naming.name(ctx, s, t.quiet)
	out := os.Stdout
	if d.Path == stdoutName {
		out = os.Stderr
	}
	write := t.render(out, s, where, skipped)
	defer progress(t.quiet, "writing the report")()
	done := make(chan error, 1)
	go func() { done <- write(out) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		return fmt.Errorf("the report was not written to its end: %w", context.Cause(ctx))
	}
	if err != nil && !readerGone(err) {
		return fmt.Errorf("write the report: %w", show.WithoutPath(err))
	}
	return nil
}

// report is the report of a capture with the verdict on it, or its first screen alone.
func (t *take) report(out *os.File, s *kcdata.Snapshot, where string, skipped []string) (write func(io.Writer) error) {
	v := verdict.Judge(s, defaultMinWait)
	t.late = func(where string) error {
		o := t.screen(out, s, where)
		o.Verdict = v
		return screen.Next(out, s, o)
	}
	if t.firstScreen {
		o := t.screen(out, s, where)
		o.NotSymbolized, o.Verdict = skipped, v
		return func(w io.Writer) error { return screen.Text(w, s, o) }
	}
	o := terminalOptions(out)
	o.ShowSelf, o.NotSymbolized, o.Verdict, o.File, o.Program = t.self, skipped, v, fileNamed(where), programWords()
	return func(w io.Writer) error { return report.Text(w, s, o) }
}

// incomplete says what a capture could not record, and whether anything was stopped. With
// --engine procfs nothing was to be stopped.
func (t *take) incomplete(res *snapshot.Result) error {
	var errs []error
	if res.Isolation == snapshot.IsolationNone && t.options.Engine != snapshot.EngineProcfs {
		errs = append(errs, errors.New("nothing was stopped; the file says why"))
	}
	if n := kcdata.LeftOutTasks(res.LeftOut); n > 0 {
		errs = append(errs, fmt.Errorf("incomplete: %d of %d tasks are left out, wholly or in part; the file lists them", n, res.Seen))
	}
	if n := len(res.CPUs.Missing); n > 0 {
		errs = append(errs, fmt.Errorf("incomplete: %s did not come to the stop: %s", show.Count(n, "CPU"), topology.FormatCPUList(res.CPUs.Missing)))
	}
	return errors.Join(errs...)
}

// readerGone reports whether whoever read our output has left.
func readerGone(err error) bool { return errors.Is(err, unix.EPIPE) }

// writeTakeJSON writes the object that `take --json` prints (docs/take-json.md), and a
// newline. sequence is the number in a series, from 1; 0: it is not of a series.
func writeTakeJSON(w io.Writer, file string, sequence int, r *snapshot.Result) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(show.Object{
		{"sequence", show.Known(sequence)}, {"file", file}, {"engine", r.Engine}, {"isolation", r.Isolation},
		{"tasks", r.Tasks}, {"threads", r.Threads},
		{"stopped_ns", r.Stopped.Nanoseconds()}, {"window_ns", r.Window.Nanoseconds()},
		{"arrival_ns", r.Arrival.Nanoseconds()}, {"elapsed_ns", r.Elapsed.Nanoseconds()},
		{"tries", r.Tries}, {"bytes", r.Bytes},
		{"cpus", show.Object{
			{"online", len(r.CPUs.Online)}, {"stopped", len(r.CPUs.Stopped)}, {"working", len(r.CPUs.Working)},
			{"missing", append([]int{}, r.CPUs.Missing...)},
		}},
		{"stop_broken", r.StopBroken}, {"compared", r.Compared}, {"ran", r.Ran}, {"files", account.FilesJSON(r.Files)},
		{"left_out", show.List(r.LeftOut, account.LeftOutTakeJSON)}, {"warnings", account.Warnings(r.Warnings)},
	})
}

// deliver writes the file of a capture and says so. A failure is counted and shown, and does
// not end the series: the next file may find room. On a read-only file system none will.
func (s *series) deliver(ctx context.Context, n int, at time.Time, shot *shot) error {
	s.warn(n, shot.res)
	if err := s.incomplete(shot.res); err != nil {
		s.tally.incomplete++
		if key := err.Error(); !s.told[key] { // shown once: it may be the same for each capture
			s.told[key] = true
			s.complain(n, err)
		}
	}
	file := s.save(ctx, s.files.Destination(n, at), s.envelope, shot.plain)
	if s.tally.stored(file.where, file.err); file.err != nil {
		s.complain(n, file.err)
	}
	switch {
	case s.json && s.jsonErr == nil: // unless an earlier object could not be written
		s.jsonErr = writeTakeJSON(os.Stdout, file.where, n, shot.res)
	case !s.json && !s.quiet && file.err == nil:
		say(os.Stderr, "%s: %s, wrote %s, %s", s.title(n), brief(shot.res), file.where, humanBytes(file.size))
	}
	if file.where == "" && errors.Is(file.err, publish.ErrReadOnly) {
		return fmt.Errorf("%w: no file can be written", errLastCapture)
	}
	return nil
}

// warn shows each kind of warning once: otherwise each capture would repeat it.
func (s *series) warn(n int, res *snapshot.Result) {
	for _, w := range res.Warnings {
		if !s.told[w.Code] && !s.quiet && !s.json {
			s.told[w.Code] = true
			say(os.Stderr, "%s: %s", s.title(n), w.Text)
		}
	}
}

// brief is a capture in a few words.
func brief(r *snapshot.Result) string {
	stopped := "nothing stopped"
	if r.Stopped > 0 {
		stopped = "stopped " + milliseconds(r.Stopped)
	}
	return fmt.Sprintf("%s, %s threads", stopped, show.Thousands(uint64(r.Threads)))
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1e3) }

// humanBytes is a size for people, with fewer digits than show.Size.
func humanBytes(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
