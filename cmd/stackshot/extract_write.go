package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"stackshot/internal/extract"
	"stackshot/internal/publish"
	"stackshot/internal/show"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// mostLive bounds the captures that get a file of their own. One at a time holds a machine; a dump that somebody made
// may claim thousands.
const mostLive = 8

// write writes the file of the best region, and beside it one for each capture that held the machine
// when it panicked. What the dump has besides is named.
func (x *extracting) write(ctx context.Context, name string, found *extract.Found, warnings []string) error {
	if len(found.Regions) == 0 || found.Regions[0].Err != nil {
		return without(warnings, x.errNoRegion(name, found))
	}
	best := found.Regions[0]
	live, others := found.Beside(best)
	if n := len(live) - mostLive; n > 0 {
		others = append(others, live[mostLive:]...)
		live = live[:mostLive]
	}
	for _, line := range regionLines(others) {
		warnings = append(warnings, "also in the dump, not in this file: "+line)
	}
	o := extract.Options{Version: snapshot.Version(), Warnings: warnings, Beside: found.Describes(best)}
	p, err := x.prepare(ctx, best, o)
	if err != nil {
		return without(append(warnings, best.Flaws...), fmt.Errorf("%s: %w", name, err))
	}
	debug.FreeOSMemory() // what is left of the search and of the packed symbols
	path, err := x.writeOne(ctx, p, "", "")
	if err != nil && path == "" {
		return err
	}
	for _, w := range warnings {
		x.say("!! %s", w)
	}
	errs := []error{err}
	for i, r := range live {
		errs = append(errs, x.writeLive(ctx, found, r, path, i))
	}
	return errors.Join(errs...)
}

// without says what is wrong with a dump of which no file is made: what is missing may be why.
func without(warnings []string, err error) error {
	for _, w := range warnings {
		say(os.Stderr, "!! %s", w)
	}
	return err
}

func (x *extracting) prepare(ctx context.Context, r *extract.Region, o extract.Options) (*extract.Prepared, error) {
	return graced(ctx, func() (*extract.Prepared, error) { return extract.Prepare(r, o) })
}

// writeLive writes the file of a capture that was running, beside path.
func (x *extracting) writeLive(ctx context.Context, found *extract.Found, r *extract.Region, path string, i int) error {
	if path == stdoutName {
		x.say("!! also in the dump, and standard output has room for one: %s", r.Line())
		return nil
	}
	p, err := x.prepare(ctx, r, extract.Options{Version: snapshot.Version(), Beside: found.Describes(r)})
	if err != nil {
		if ctx.Err() != nil {
			return partial(err)
		}
		x.say("!! also in the dump, without a file: %s: %v", r.Line(), err)
		return nil
	}
	suffix := "-live"
	if i > 0 {
		suffix += fmt.Sprint(i + 1)
	}
	if _, err = x.writeOne(ctx, p, path, suffix); err != nil {
		return partial(err) // there is the other file
	}
	return nil
}

// withSuffix puts a suffix before the extensions that captures have.
func withSuffix(path, suffix string) string {
	dir, base := filepath.Split(path)
	stem := base
	for _, ext := range []string{".zst", ".kcdata"} {
		stem = strings.TrimSuffix(stem, ext)
	}
	return dir + stem + suffix + base[len(stem):]
}

// writeOne writes a file, and says what it is and what it lacks. path is where, if not "" the file beside which it
// goes. The error of a file that lacks something comes with a path.
func (x *extracting) writeOne(ctx context.Context, p *extract.Prepared, beside, suffix string) (path string, err error) {
	envelope := envelopes[x.compression]
	spare := publish.FileNameOf(p.Hostname(), time.Unix(0, int64(p.At().Realtime)), envelope)
	path = cmp.Or(x.output, spare)
	if beside != "" {
		path = withSuffix(beside, suffix)
	}
	d := x.destination(path, spare)
	if err := checkTarget(ctx, d); err != nil {
		return "", err
	}
	var res *extract.Result
	spool, err := graced(ctx, func() (spool *publish.Spool, err error) {
		spool, res, err = x.make(p, d.Path, envelope)
		return spool, err
	})
	if err == nil {
		defer spool.Close()
		err = context.Cause(ctx) // the dump is still there: nothing is lost
	}
	if err != nil {
		return "", fmt.Errorf("%s: not written: %w", d.Path, err)
	}
	if _, err := d.Save(ctx, spool); err != nil {
		return "", err
	}
	size, _ := spool.Size()
	x.say("%s: %s, %s with %s", d.Path, res.Title(), show.Count(res.Tasks, "task"), show.Count(res.Threads, "thread"))
	if d.Path != stdoutName {
		x.say("wrote %s, %s", d.Path, humanBytes(size))
	}
	if len(res.Missing) == 0 {
		return d.Path, nil
	}
	return d.Path, partial(fmt.Errorf("%s is incomplete: %s", d.Path, strings.Join(res.Missing, "; ")))
}

// destination is the file at path; spare is its name in hints.
func (x *extracting) destination(path, spare string) *publish.Destination {
	return &publish.Destination{Writer: fileWriter(x.timeout), Path: path, LastResort: spare, Given: x.output != "", NoLastResort: true}
}

func (x *extracting) say(format string, args ...any) {
	if !x.quiet {
		say(os.Stderr, format, args...)
	}
}

// make makes the file, without a name yet, beside its target: it may be too large for memory.
func (x *extracting) make(p *extract.Prepared, target string, e kcdata.Envelope) (*publish.Spool, *extract.Result, error) {
	dir := filepath.Dir(target)
	if target == stdoutName {
		dir = os.TempDir()
	}
	spool, err := publish.NewSpoolIn(dir)
	if err != nil {
		return nil, nil, err
	}
	defer progress(x.quiet, "writing "+filepath.Base(target))()
	out, err := kcdata.NewCompressor(spool.Raw(), e)
	var res *extract.Result
	if err == nil {
		res, err = p.Write(out)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		spool.Close()
		return nil, nil, err
	}
	return spool, res, nil
}
