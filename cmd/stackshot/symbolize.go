package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"stackshot/internal/publish"
	"stackshot/internal/show"
	"stackshot/internal/symbolize"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// symbolizing is one run of `stackshot symbolize`.
type symbolizing struct {
	naming
	output  string
	unwind  bool
	timeout time.Duration
	same    bool // nothing new was found out
}

// maxNotSymbolized bounds the lines about files: a hostile snapshot names thousands.
const maxNotSymbolized = 100

func symbolizeCommand() *cobra.Command {
	z := &symbolizing{}
	cmd := &cobra.Command{
		Use:   "symbolize FILE",
		Short: "Write the names of user stacks into a snapshot file, so that it can travel (- for standard input)",
		Long: "Writes the names of user functions into FILE, from the program files and debug files of\n" +
			"this machine, and prints nothing else. The best place is the machine it was taken on, soon.\n\n" +
			"A name that the file has already stays, unless more is known now (--lines). FILE is\n" +
			"replaced as a whole, in the compression it has; where nothing new is known it is not\n" +
			"touched. A file that breaks off is refused.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return z.run(cmd, args[0]) },
	}
	z.flags(cmd)
	f := cmd.Flags()
	f.StringVarP(&z.output, "output", "o", "", "write to `FILE` and leave the other as it is; - for standard output")
	f.BoolVar(&z.unwind, "unwind", false, "first make the user stacks anew from what take left of them in the file: all with --keep-stacks, else those that lack an unwind table")
	f.DurationVar(&z.timeout, "write-timeout", 10*time.Second, "longest time to wait for the target's file system")
	return cmd
}

func (z *symbolizing) run(cmd *cobra.Command, name string) error {
	if z.timeout <= 0 {
		return &snapshot.OptionError{Option: "write-timeout", Value: z.timeout.String(), Reason: "want more than 0"}
	}
	if z.output == "" && cmd.Flags().Changed("output") {
		return &snapshot.OptionError{Option: "output", Value: `""`, Reason: "want a value"}
	}
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	d := &publish.Destination{Writer: fileWriter(z.timeout), Path: cmp.Or(z.output, name), Given: true, NoSpare: true}
	data, err := readAll(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, show.WithoutPath(err))
	}
	if err := checkTarget(ctx, d); err != nil {
		return err
	}
	named, tally, err := z.rewrite(ctx, data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return z.save(ctx, d, name, named, tally)
}

// rewrite gives a file with its names, in the envelope it came in; data itself
// where nothing is new. The caller closes it.
func (z *symbolizing) rewrite(ctx context.Context, data []byte) (*publish.Spool, symbolize.Tally, error) {
	var none symbolize.Tally
	boundHeap(len(data))
	plain, envelope, err := kcdata.Unwrap(data, maxPlain)
	if err != nil {
		return nil, none, err
	}
	s, err := kcdata.ParseSnapshotWithin(plain, kcdata.Memory(int64(len(data))))
	if err != nil {
		return nil, none, err
	}
	again := plain
	if z.unwind {
		type redone struct {
			plain []byte
			s     *kcdata.Snapshot
		}
		made, err := graced(ctx, func() (redone, error) { // it waits for files
			out, again, err := z.redo(plain, s)
			return redone{out, again}, err
		})
		if err != nil {
			return nil, none, err
		}
		again, s = made.plain, made.s
	}
	names, skipped := z.resolve(ctx, s, false)
	if err := context.Cause(ctx); err != nil {
		return nil, none, err
	}
	for _, what := range skipped[:min(len(skipped), maxNotSymbolized)] {
		say(os.Stderr, "not symbolized: %s", what)
	}
	if n := len(skipped) - maxNotSymbolized; n > 0 {
		say(os.Stderr, "not symbolized: %d more files", n)
	}
	out, tally, err := symbolize.Rewrite(again, s, names)
	if err != nil {
		return nil, none, err
	}
	if z.same = bytes.Equal(out, plain); !z.same {
		f, err := publish.Compress(out, envelope)
		return f, tally, err
	}
	f, err := publish.NewSpool("file")
	if err != nil {
		return nil, none, err
	}
	_, err = f.Write(data)
	return f, tally, err
}

func (z *symbolizing) save(ctx context.Context, d *publish.Destination, name string, named *publish.Spool, tally symbolize.Tally) error {
	defer named.Close()
	count := fmt.Sprintf("%d of %d addresses of user stacks have a function's name; addresses with a new name, module or line: %d", tally.Named, tally.Addresses, tally.New)
	if z.same && d.Path == name && name != stdoutName {
		say(os.Stderr, "%s: %s; the file is as it was", name, count)
		return nil
	}
	size, err := named.Size()
	if err != nil {
		return err
	}
	where, err := d.Save(ctx, named)
	if where == "" {
		return errors.Join(err, fmt.Errorf("%s is as it was", name))
	}
	say(os.Stderr, "%s: %s", where, count)
	if where != stdoutName {
		say(os.Stderr, "wrote %s, %s", where, humanBytes(size))
	}
	return err
}
