package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"stackshot/internal/filter"
	"stackshot/internal/latency"
	"stackshot/internal/show"
	"stackshot/snapshot"
)

const defaultTop = 10

// latencyOptions are the flags of `stackshot latency`.
type latencyOptions struct {
	narrowing
	format string
	top    int

	nothing []error // of the files in which no thread is left
}

func latencyCommand() *cobra.Command {
	var o latencyOptions
	cmd := &cobra.Command{
		Use:   "latency FILE...",
		Short: "Show what captures cost, and how long the machine's threads have waited (- for standard input)",
		Long: "For one file, shows where the time of the pause went, what was slowest, and how long the\n" +
			"machine's own threads have waited for a CPU or slept. For several files, shows a line\n" +
			"each, and the distributions over all of them. A file that cannot be read to its end is\n" +
			"named and left out." + narrowHelp + "\nPauses are always of the whole machine.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return showLatency(cmd.Context(), os.Stdout, args, o)
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "text", "text or json")
	cmd.Flags().IntVar(&o.top, "top", defaultTop, "most entries in each list of tasks or threads")
	o.flags(cmd)
	completeWith(cmd, "format", "text", "json")
	return cmd
}

// showLatency writes the figures of the files that can be read. The error names
// each of the others, one line per file.
func showLatency(ctx context.Context, w io.Writer, names []string, o latencyOptions) error {
	if o.format != "text" && o.format != "json" {
		return &snapshot.OptionError{Option: "format", Value: o.format, Reason: "want text or json"}
	}
	if o.top < 1 {
		return &snapshot.OptionError{Option: "top", Value: fmt.Sprint(o.top), Reason: "want at least 1"}
	}
	files, failed, errs := measure(ctx, names, &o)
	if len(files) == 0 {
		return errors.Join(errs...)
	}
	var err error
	switch {
	case o.format == "json":
		err = latency.JSON(w, files, failed)
	case len(o.nothing) < len(files):
		err = latency.Text(w, files, latency.TextOptions{Width: terminalOptions(os.Stdout).Width, Top: o.top})
	}
	switch {
	case err != nil:
		return fmt.Errorf("write the figures: %w", show.WithoutPath(err))
	case len(o.nothing) == len(files): // else what the other files show is an answer
		errs = append(errs, o.nothing...)
	}
	if len(errs) > 0 {
		return partial(errors.Join(errs...))
	}
	return nil
}

// measure reads one file after the other, and keeps only the figures of each.
func measure(ctx context.Context, names []string, o *latencyOptions) (files []*latency.Figures, failed []latency.Failed, errs []error) {
	for _, name := range names {
		s, err := readWhole(name)
		if err != nil {
			errs = append(errs, err)
			failed = append(failed, latency.Failed{File: name, Error: err.Error()})
			continue
		}
		if o.expr.Uses(filter.Func, filter.Module) { // of user stacks, as the other commands have them
			for _, skipped := range (&naming{}).name(ctx, s, false) {
				say(os.Stderr, "%s: not symbolized: %s", name, skipped)
			}
		}
		only, absent := o.choose(s, nil)
		if none := o.none(name, s, only, absent, false); none != nil {
			o.nothing = append(o.nothing, none)
		}
		files = append(files, latency.Measure(name, s, o.top, only))
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
