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
	paging
	narrowing
	newest newest
	format string
	top    int

	nothing []error // of the files in which no thread is left
}

func latencyCommand() *cobra.Command {
	var o latencyOptions
	cmd := &cobra.Command{
		Use:   "latency FILE...",
		Short: "Show what captures cost, and how long threads have waited",
		Long: "For one file (- for standard input), shows where the time of the pause went, what was\n" +
			"slowest, and how long the machine's own threads have waited for a CPU or slept. For several\n" +
			"files, shows a line each, the distributions over all of them, and where threads waited from\n" +
			"file to file. A file that cannot be read to its end is named and left out." + narrowHelp + "\nPauses are always of the whole machine.",
		Example: "  stackshot latency FILE\n  stackshot latency --newest .\n  stackshot latency DIR/*.kcdata.zst",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.narrowing.check(cmd); err != nil {
				return err
			}
			name, err := o.newest.choose(args, "")
			switch {
			case err != nil:
				return err
			case name == "":
				return usage("a FILE is missing, or --newest DIR: " + cmd.UseLine())
			case len(args) == 0:
				args = []string{name}
			}
			return o.paging.run(os.Stdout, func(out io.Writer) error { return showLatency(cmd.Context(), out, args, o) })
		},
	}
	o.newest.flag(cmd)
	o.paging.flag(cmd)
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
	waits := new(latency.Waits)
	files, failed, errs := measure(ctx, names, &o, waits)
	if len(files) == 0 {
		return errors.Join(errs...)
	}
	var err error
	switch {
	case o.format == "json":
		err = unlessGone(latency.JSON(w, files, failed, waits, o.top))
	case len(o.nothing) < len(files):
		err = unlessGone(latency.Text(w, files, latency.TextOptions{Width: terminalOptions(os.Stdout).Width, Top: o.top, Waits: waits}))
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
func measure(ctx context.Context, names []string, o *latencyOptions, waits *latency.Waits) (files []*latency.Figures, failed []latency.Failed, errs []error) {
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
		waits.Add(s, only)
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
