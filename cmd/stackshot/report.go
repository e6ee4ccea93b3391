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
	paging
	narrowing
	newest newest
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
		Use:   "report [FILE]",
		Short: "Show the report of a file, or of the newest one here",
		Long: "Shows the report of a snapshot file. Without FILE (- for standard input) it is that of the\n" +
			"newest capture in the current directory. User stacks show the names that the file holds.\n" +
			"Other names are looked up in this machine's program files and debug files, by build-id.\n" +
			"FILE may also be in gzip or base64, or a crash file with a stackshot nested in it.\n\n" +
			"--format folded writes stacks for the flame-graph tools, --format pprof a profile for\n" +
			"'go tool pprof'." + narrowHelp,
		Example: "  stackshot report\n  stackshot report --newest /var/crash\n  stackshot report --format folded FILE | flamegraph.pl > flames.svg",
		Args:    takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(r.check(os.Stdout), r.narrowing.check(cmd)); err != nil {
				return err
			}
			name, err := r.newest.choose(args, ".")
			if err != nil {
				return err
			}
			return r.show(cmd.Context(), os.Stdout, name)
		},
	}
	r.newest.flag(cmd)
	r.paging.flag(cmd)
	r.naming.flags(cmd)
	r.narrowing.flags(cmd)
	r.flagOff(cmd)
	cmd.Flags().StringVar(&r.format, "format", "text", "text, json, folded (flame graphs) or pprof")
	cmd.Flags().BoolVar(&r.o.ShowSelf, "self", false, "show stackshot's own threads")
	cmd.Flags().BoolVar(&r.o.ShowIdle, "idle", false, "show idle kernel threads and the CPUs' idle threads one by one")
	r.layoutFlags(cmd)
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
	return r.checkLayout()
}

// show writes a file's report. If the file breaks off, the report shows what came before, and
// the error says where that ends.
func (r *reporting) show(ctx context.Context, w io.Writer, name string) error {
	if err := r.check(w); err != nil {
		return err
	}
	if r.format == "text" {
		term := terminalOptions(os.Stdout)
		r.o.Width, r.o.Color, r.o.File, r.o.Program = term.Width, term.Color, fileNamed(name), programWords()
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
	r.o.Only, r.o.Absent = r.choose(s, r.o.Verdict)
	none := r.none(name, s, r.o.Only, r.o.Absent, r.o.ShowSelf)
	if none != nil && r.format == "text" { // the other forms are for programs, which want them well formed
		return errors.Join(none, reportError(name, s, nil, broken))
	}
	if none == nil && (r.format == "folded" || r.format == "pprof") {
		r.sayHidden(s, r.o.Only)
	}
	err := r.paging.run(w, func(w io.Writer) error { return unlessGone(writers[r.format](w, s, r.o)) })
	return errors.Join(none, reportError(name, s, err, broken))
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
		return partial(fmt.Errorf("%w: the report is of what was read, %s with %s", broken,
			show.Count(len(s.Tasks), "task"), show.Count(s.ThreadCount(), "thread")))
	}
	return nil
}
