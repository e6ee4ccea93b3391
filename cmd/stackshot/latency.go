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
	paging
	newest newest
	format string
	top    int
}

func latencyCommand() *cobra.Command {
	var o latencyOptions
	cmd := &cobra.Command{
		Use:   "latency FILE...",
		Short: "Show what captures cost, and how long threads have waited",
		Long: "For one file (- for standard input), shows where the time of the pause went, what was\n" +
			"slowest, and how long the machine's own threads have waited for a CPU or slept. For several\n" +
			"files, shows a line each, and the distributions over all of them. A file that cannot be read\n" +
			"to its end is named and left out.",
		Example: "  stackshot latency FILE\n  stackshot latency --newest .\n  stackshot latency DIR/*.kcdata.zst",
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := o.newest.choose(args, "")
			switch {
			case err != nil:
				return err
			case name == "":
				return usage("latency wants at least 1 arg: a FILE, or --newest DIR")
			case len(args) == 0:
				args = []string{name}
			}
			return o.paging.run(os.Stdout, func(out io.Writer) error { return showLatency(out, args, o) })
		},
	}
	o.newest.flag(cmd)
	o.paging.flag(cmd)
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
	files, failed, errs := measure(names, o.top)
	if len(files) == 0 {
		return errors.Join(errs...)
	}
	var err error
	if o.format == "json" {
		err = unlessGone(latency.JSON(w, files, failed))
	} else {
		err = unlessGone(latency.Text(w, files, latency.TextOptions{Width: terminalOptions(os.Stdout).Width, Top: o.top}))
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
func measure(names []string, top int) (files []*latency.Figures, failed []latency.Failed, errs []error) {
	for _, name := range names {
		s, err := readWhole(name)
		if err != nil {
			errs = append(errs, err)
			failed = append(failed, latency.Failed{File: name, Error: err.Error()})
			continue
		}
		files = append(files, latency.Measure(name, s, top))
	}
	return files, failed, errs
}

// showTrace writes the trace of one file: stackshot's own last events.
func showTrace(w io.Writer, name string) error {
	s, err := readWhole(name)
	if err != nil {
		return err
	}
	err = unlessGone(latency.TraceText(w, s, terminalOptions(os.Stdout).Width))
	switch {
	case errors.Is(err, latency.ErrNoTrace):
		return fmt.Errorf("%s: %w", name, err)
	case err != nil:
		return fmt.Errorf("write the trace: %w", show.WithoutPath(err))
	}
	return nil
}
