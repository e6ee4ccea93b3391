package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// progressAfter is how long something may take before a line says what it is, and how
// often the line is written again.
const progressAfter = time.Second

// progress shows on a terminal what is being done, once that takes long.
// The result ends it and wipes the line.
func progress(quiet bool, what string) (done func()) {
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
				fmt.Fprintf(os.Stderr, "\rstackshot: %s, %.0f s\x1b[K", what, time.Since(began).Seconds())
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}
