package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"stackshot/internal/report"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// reporting is one run of `stackshot report`.
type reporting struct {
	naming
	format string
	o      report.Options
}

// writers are the forms of a report, by the values of --format.
var writers = map[string]func(io.Writer, *kcdata.Snapshot, report.Options) error{
	"text": report.Text, "json": report.JSON, "folded": report.Folded, "pprof": report.Pprof,
}

func reportCommand() *cobra.Command {
	r := &reporting{}
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "Show the report of a snapshot file (- for standard input)",
		Long: "Shows the report of a snapshot file. User stacks show the names that the file holds.\n" +
			"Other names are looked up in this machine's program files and debug files, by build-id.\n\n" +
			"--format folded writes stacks for the flame-graph tools, --format pprof a profile for\n" +
			"'go tool pprof'.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.show(cmd.Context(), os.Stdout, args[0])
		},
	}
	r.flags(cmd)
	r.flagOff(cmd)
	cmd.Flags().StringVar(&r.format, "format", "text", "text, json, folded (flame graphs) or pprof")
	cmd.Flags().IntSliceVar(&r.o.Pids, "pid", nil, "show only this task; may be repeated")
	cmd.Flags().BoolVar(&r.o.ShowSelf, "self", false, "show stackshot's own threads")
	cmd.Flags().BoolVar(&r.o.ShowIdle, "idle", false, "show idle kernel threads and the CPUs' idle threads one by one")
	completeWith(cmd, "format", "text", "json", "folded", "pprof")
	return cmd
}

func (r *reporting) check(w io.Writer) error {
	if writers[r.format] == nil {
		return &snapshot.OptionError{Option: "format", Value: r.format, Reason: "want text, json, folded or pprof"}
	}
	if f, ok := w.(*os.File); ok && r.format == "pprof" && term.IsTerminal(int(f.Fd())) {
		return usage("--format pprof: standard output is a terminal, and a profile is not text: > FILE")
	}
	return checkShown(r.o.Pids)
}

// checkShown refuses values of a --pid that chooses what is shown.
func checkShown(pids []int) error {
	for _, pid := range pids {
		if uint64(pid) >= 1<<32 { // or less than 0
			return &snapshot.OptionError{Option: "pid", Value: fmt.Sprint(pid), Reason: "want a task's id"}
		}
	}
	return nil
}

// show writes a file's report. If the file breaks off, the report shows what came before, and
// the error says where that ends.
func (r *reporting) show(ctx context.Context, w io.Writer, name string) error {
	if err := r.check(w); err != nil {
		return err
	}
	if r.format == "text" {
		term := terminalOptions(os.Stdout)
		r.o.Width, r.o.Color, r.o.File = term.Width, term.Color, fileNamed(name)
	}
	s, packed, broken := readSnapshot(name)
	if s == nil {
		return broken
	}
	r.o.MaxBytes = maxOutput(packed)
	r.o.NotSymbolized = r.name(ctx, s, false)
	if r.format == "text" || r.format == "json" {
		r.o.Verdict = verdict.Judge(s, defaultMinWait)
	}
	return reportError(name, s, writers[r.format](w, s, r.o), broken)
}

// reportError is the outcome of writing a report of the file called name. broken says where the
// file breaks off.
func reportError(name string, s *kcdata.Snapshot, err, broken error) error {
	var long *report.CutError
	switch {
	case errors.As(err, &long) && broken == nil:
		return partial(fmt.Errorf("%s: %w", name, long))
	case err != nil && long == nil:
		return fmt.Errorf("write the report: %w", show.WithoutPath(err))
	case broken != nil:
		return partial(fmt.Errorf("%w: the report is of what came before, %s with %s", broken,
			show.Count(len(s.Tasks), "task"), show.Count(s.ThreadCount(), "thread")))
	}
	return nil
}
