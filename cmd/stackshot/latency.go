package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"stackshot/internal/latency"
	"stackshot/internal/show"
	"stackshot/snapshot"
)

const defaultTop = 10

// latencyOptions are the flags of `stackshot latency`.
type latencyOptions struct {
	format string
	top    int
}

func latencyCommand() *cobra.Command {
	var o latencyOptions
	cmd := &cobra.Command{
		Use:   "latency FILE...",
		Short: "Show what captures cost, and how long the machine's threads have waited (- for standard input)",
		Long: "For one file, shows where the time of the pause went, what was slowest, and how long the\n" +
			"machine's own threads have waited for a CPU or slept. For several files, shows a line\n" +
			"each, the distributions over all of them, and where threads waited from file to file. A file that cannot be read to its end is\n" +
			"named and left out.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return showLatency(os.Stdout, args, o)
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "text", "text or json")
	cmd.Flags().IntVar(&o.top, "top", defaultTop, "most entries in each list of tasks or threads")
	completeWith(cmd, "format", "text", "json")
	return cmd
}

// showLatency writes the figures of the files that can be read. The error names
// each of the others, one line per file.
func showLatency(w io.Writer, names []string, o latencyOptions) error {
	if o.format != "text" && o.format != "json" {
		return &snapshot.OptionError{Option: "format", Value: o.format, Reason: "want text or json"}
	}
	if o.top < 1 {
		return &snapshot.OptionError{Option: "top", Value: fmt.Sprint(o.top), Reason: "want at least 1"}
	}
	waits := new(latency.Waits)
	files, failed, errs := measure(names, o.top, waits)
	if len(files) == 0 {
		return errors.Join(errs...)
	}
	var err error
	if o.format == "json" {
		err = latency.JSON(w, files, failed, waits, o.top)
	} else {
		err = latency.Text(w, files, latency.TextOptions{Width: terminalOptions(os.Stdout).Width, Top: o.top, Waits: waits})
	}
	switch {
	case err != nil:
		return fmt.Errorf("write the figures: %w", show.WithoutPath(err))
	case len(errs) > 0:
		return partial(errors.Join(errs...))
	}
	return nil
}

// measure reads one file after the other, and keeps only the figures of each.
func measure(names []string, top int, waits *latency.Waits) (files []*latency.Figures, failed []latency.Failed, errs []error) {
	for _, name := range names {
		s, err := readWhole(name)
		if err != nil {
			errs = append(errs, err)
			failed = append(failed, latency.Failed{File: name, Error: err.Error()})
			continue
		}
		files = append(files, latency.Measure(name, s, top))
		waits.Add(s, nil)
	}
	return files, failed, errs
}

// showTrace writes the trace of one file: stackshot's own last events.
func showTrace(w io.Writer, name string) error {
	s, err := readWhole(name)
	if err != nil {
		return err
	}
	err = latency.TraceText(w, s, terminalOptions(os.Stdout).Width)
	switch {
	case errors.Is(err, latency.ErrNoTrace):
		return fmt.Errorf("%s: %w", name, err)
	case err != nil:
		return fmt.Errorf("write the trace: %w", show.WithoutPath(err))
	}
	return nil
}
