package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"stackshot/internal/account"
	"stackshot/internal/report"
	"stackshot/internal/screen"
	"stackshot/internal/show"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// plainRows is the height of a terminal that is not known.
const plainRows = 24

// screen gives the options of the first screen for a place to write to: what is written behind it
// has room on the same terminal.
func (t *take) screen(out *os.File, s *kcdata.Snapshot, where string) screen.Options {
	o := screen.Options{Width: terminalOptions(out).Width, Color: terminalOptions(out).Color, File: fileNamed(where), Program: programWords()}
	rows := plainRows
	if _, n, err := term.GetSize(int(out.Fd())); err == nil && n > 0 {
		rows = n
	}
	o.Height = max(rows-afterScreen(o.Width, s, where), 1)
	return o
}

// fileNamed is where as a command names it; "" if it is no file.
func fileNamed(where string) string {
	if where == stdoutName {
		return ""
	}
	return where
}

// afterScreen is how many rows follow a first screen: where the file is, what is missing from it, and
// the prompt.
func afterScreen(width int, s *kcdata.Snapshot, where string) int {
	const incomplete = 200 // cells
	rows := func(cells int) int {
		if width <= 0 {
			return 1
		}
		return 1 + (cells-1)/width
	}
	n := 1 + rows(show.Cells("stackshot: wrote "+where))
	for _, is := range []bool{
		s.Isolation == snapshot.IsolationNone, len(s.LeftOut) > 0, len(account.CPUsWith(s, kcdata.CPUMissed)) > 0,
	} {
		if is {
			n += rows(incomplete)
		}
	}
	return n
}

// wrote says where a file is, and how large if a line of the terminal has room for that: a line
// that is too long would be broken inside a word.
func wrote(where string, size, plain int64, width int) string {
	s := "wrote " + where
	more := ", " + humanBytes(size)
	unpacked := fmt.Sprintf(" (%s unpacked)", humanBytes(plain))
	fits := func(s string) bool { return width <= 0 || show.Cells("stackshot: "+s) <= width }
	switch {
	case fits(s + more + unpacked):
		return s + more + unpacked
	case fits(s + more):
		return s + more
	}
	return s
}

// terminalOptions fits a report to a terminal, if out is one.
func terminalOptions(out *os.File) report.Options {
	width, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		width = 0
	}
	return report.Options{Width: width, Color: colors.on(err == nil)}
}

// colorMode is the value of --color.
type colorMode string

const (
	colorAuto   colorMode = "auto"
	colorAlways colorMode = "always"
	colorNever  colorMode = "never"
)

// colors is set by the flag --color of every command, before the command begins.
var colors = colorAuto

func colorFlag(root *cobra.Command) {
	root.PersistentFlags().Var(&colors, "color", "colours in text: always, never or auto (on a terminal, unless NO_COLOR is set or TERM is dumb)")
	completeWith(root, "color", string(colorAuto), string(colorAlways), string(colorNever))
}

// on decides by the usual rules (no-color.org) whether text is coloured. Who says always or never
// knows better than the environment.
func (c colorMode) on(terminal bool) bool {
	if c != colorAuto {
		return c == colorAlways
	}
	return terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func (c *colorMode) String() string { return string(*c) }

func (c *colorMode) Type() string { return "when" }

func (c *colorMode) Set(s string) error {
	switch colorMode(s) {
	case colorAuto, colorAlways, colorNever:
		*c = colorMode(s)
		return nil
	}
	return errors.New("want auto, always or never")
}

// progressAfter is how long something may take before a line says what is being done, and the
// interval at which the line is written again.
const progressAfter = time.Second

// progress shows on a terminal what is being done, once that takes long. done ends that and
// wipes the line.
func progress(quiet bool, what string) (done func()) {
	return progressOf(quiet, time.Now(), func() string { return what })
}

// progressOf is progress of what changes, and began at some time; what is called by another goroutine.
func progressOf(quiet bool, began time.Time, what func() string) (done func()) {
	if quiet || !term.IsTerminal(int(os.Stderr.Fd())) {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(progressAfter)
		defer tick.Stop()
		shown := false
		for {
			if took := time.Since(began); took >= progressAfter {
				shown = true
				fmt.Fprintf(os.Stderr, "\rstackshot: %s, %.0f s\x1b[K", show.Clean(what()), took.Seconds())
			}
			select {
			case <-stop:
				if shown {
					fmt.Fprint(os.Stderr, "\r\x1b[K")
				}
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}
