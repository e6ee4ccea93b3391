package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stackshot/internal/hang"
	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// hangs is one run of `stackshot hang`: of a file, or of a capture that it takes.
type hangs struct {
	*take
	paging
	narrowing
	newest  newest
	format  string
	minWait time.Duration
	o       hang.Options
	capture map[string]bool // flags that only a capture has
	found   bool            // a hang was found
	none    error           // no thread was left to show
	blind   string          // verdict.Words.Blind
}

// defaultMinWait is the age from which a wait counts.
const defaultMinWait = time.Second

// verdictWriters are the forms of the verdict, by the values of --format.
var verdictWriters = map[string]func(io.Writer, *kcdata.Snapshot, *waitgraph.Verdict, hang.Options) error{
	"text": hang.Text, "json": hang.JSON, "dot": hang.Dot,
}

func hangCommand() *cobra.Command {
	h := &hangs{take: newTake(), capture: map[string]bool{}}
	h.render = h.judge
	cmd := &cobra.Command{
		Use:   "hang [FILE]",
		Short: "Say what hangs: who waits for whom, and who is to blame",
		Long: "Says what hangs in a snapshot file: deadlocks, threads that keep others waiting and do not\n" +
			"go on, convoys; with each who waits for what, who has it, and how that is known. Without\n" +
			"FILE (- for standard input) it takes a snapshot, with the options of 'stackshot take',\n" +
			"and keeps the file.\n\n" +
			"Exit code 4 if something hangs, 0 if nothing does. It is 3 if nothing is seen to hang, but\n" +
			"the picture is incomplete, or the file has no records of waits (--wait off, engine procfs,\n" +
			"earlier versions)." + narrowHelp + "\nAll threads are recorded and judged: findings are shown in which one of these has a part.",
		Example: "  sudo stackshot hang\n  stackshot hang FILE\n  stackshot hang --newest /var/crash\n  stackshot hang --format dot FILE | dot -Tsvg > graph.svg",
		Args:    takes(0, 1),
		RunE:    func(cmd *cobra.Command, args []string) error { return h.outcome(h.run(cmd, args)) },
	}
	f := cmd.Flags()
	h.captureFlags(cmd)
	f.VisitAll(func(flag *pflag.Flag) { h.capture[flag.Name] = flag.Name != "remote-files" })
	h.naming.flagOff(cmd)
	h.newest.flag(cmd)
	h.paging.flag(cmd)
	f.StringVar(&h.format, "format", "text", "text, json or dot (a graph for Graphviz)")
	f.DurationVar(&h.minWait, "min-wait", defaultMinWait, "age from which a wait makes a chain or a convoy")
	h.narrowing.flags(cmd)
	completeWith(cmd, "format", "text", "json", "dot")
	return cmd
}

// outcome adds the exit code of a hang that was found, which goes before that of an incomplete
// result. That nothing was found says little if there was nothing to look at.
func (h *hangs) outcome(err error) error {
	code := exitCode(err)
	switch {
	case code != exitWhole && code != exitIncomplete:
		return err
	case h.found:
		return &exitError{cmp.Or(err, errSaid), exitHang}
	case h.none != nil:
		return errors.Join(h.none, err)
	case h.blind != "" && err == nil:
		return partial(fmt.Errorf("%s: whether anything hangs is not known: %s", cmp.Or(h.o.File, "the snapshot"), h.blind))
	}
	return err
}

func (h *hangs) run(cmd *cobra.Command, args []string) error {
	if err := h.check(cmd, args); err != nil {
		return err
	}
	name, err := h.newest.choose(args, "")
	if err != nil {
		return err
	}
	if name != "" {
		return h.file(cmd.Context(), os.Stdout, name)
	}
	if h.format != "text" {
		h.patience = forever // whoever reads it is a program, which is told where the file is
	}
	return h.take.run(cmd)
}

func (h *hangs) check(cmd *cobra.Command, args []string) error {
	if verdictWriters[h.format] == nil {
		return &snapshot.OptionError{Option: "format", Value: h.format, Reason: "want text, json or dot"}
	}
	if h.minWait <= 0 {
		return &snapshot.OptionError{Option: "min-wait", Value: h.minWait.String(), Reason: "want more than 0"}
	}
	if err := h.narrowing.check(cmd); err != nil {
		return err
	}
	if h.newest.dir != "" {
		args = append(args, h.newest.dir)
	}
	if len(args) == 0 {
		if h.output == stdoutName && h.format != "text" {
			return usage("--format " + h.format + " and -o - both want standard output")
		}
		return nil
	}
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if h.capture[f.Name] {
			err = usage(fmt.Sprintf("--%s is for a capture, and %q was taken before", f.Name, args[0]))
		}
	})
	return err
}

// file judges a snapshot file. If the file breaks off, what came before is judged, and the
// error says where that ends.
func (h *hangs) file(ctx context.Context, w *os.File, name string) error {
	h.naming.quick, h.naming.remote = false, h.options.RemoteFiles
	s, packed, broken := readSnapshot(name)
	if s == nil {
		return broken
	}
	skipped := h.naming.name(ctx, s, false)
	h.o.MaxBytes = maxOutput(packed)
	write := h.judge(w, s, name, skipped)
	return reportError(name, s, h.paging.run(w, func(out io.Writer) error { return unlessGone(write(out)) }), broken)
}

// judge finds what hangs in s, whose file is at where, and returns what shows it.
func (h *hangs) judge(out *os.File, s *kcdata.Snapshot, where string, skipped []string) (write func(io.Writer) error) {
	v := verdict.Judge(s, h.minWait)
	h.o.File, h.o.NotSymbolized = where, skipped
	h.o.Only, h.o.Absent = h.choose(s, v)
	h.none = h.narrowing.none(cmp.Or(where, "the snapshot"), s, h.o.Only, h.o.Absent, false)
	words := verdict.For(s, v)
	h.found, h.blind = len(words.Told(h.o.Only)) > 0, words.Blind()
	if h.format == "text" {
		term := terminalOptions(out)
		h.o.Width, h.o.Color = term.Width, term.Color
	}
	return func(w io.Writer) error {
		switch {
		case h.none != nil && h.format == "text":
			return nil
		case h.none == nil && h.format == "dot":
			h.sayHidden(s, h.o.Only)
		}
		return verdictWriters[h.format](w, s, v, h.o)
	}
}
