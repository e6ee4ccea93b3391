package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"stackshot/internal/publish"
	"stackshot/internal/report"
)

// The first screen has as many lines as the terminal, without those for the line that says
// where the file is and for the prompt.
const (
	plainScreen   = 40 // if there is no terminal
	minScreen     = 10
	screenReserve = 3
)

// screen gives the report's options for a place to write to.
func (t *take) screen(out *os.File, rest string) report.Options {
	o := terminalOptions(out)
	o.ShowSelf = t.self
	o.RestCommand = rest
	if t.firstScreen {
		o.FirstScreen = plainScreen
		if _, rows, err := term.GetSize(int(out.Fd())); err == nil {
			o.FirstScreen = max(rows-screenReserve, minScreen)
		}
	}
	return o
}

// terminalOptions fits a report to a terminal, if out is one.
func terminalOptions(out *os.File) report.Options {
	width, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return report.Options{}
	}
	return report.Options{Width: width, Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// shellWord quotes a file name for the command line that a report proposes.
func shellWord(s string) string {
	safe := !strings.HasPrefix(s, "-") && publish.SafeName(strings.ReplaceAll(s, "/", "_")) == strings.ReplaceAll(s, "/", "_")
	if safe && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// progressAfter is how long something may take before a line says what is being done, and the
// interval at which the line is written again.
const progressAfter = time.Second

// progress shows on a terminal what is being done, once that takes long. done ends that and
// wipes the line.
func progress(quiet bool, what string) (done func()) {
	return progressOf(quiet, func() string { return what })
}

// progressOf is progress of what changes; what is called by another goroutine.
func progressOf(quiet bool, what func() string) (done func()) {
	if quiet || !term.IsTerminal(int(os.Stderr.Fd())) {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		began, shown := time.Now(), false
		tick := time.NewTicker(progressAfter)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				if shown {
					fmt.Fprint(os.Stderr, "\r\x1b[K")
				}
				return
			case <-tick.C:
				shown = true
				fmt.Fprintf(os.Stderr, "\rstackshot: %s, %.0f s\x1b[K", what(), time.Since(began).Seconds())
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}
