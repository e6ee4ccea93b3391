package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"stackshot/internal/foreign"
	"stackshot/internal/image"
	"stackshot/internal/publish"
	"stackshot/internal/stacks"
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
}

// maxNotSymbolized bounds the lines about unread files: a hostile snapshot names thousands.
const maxNotSymbolized = 100

func symbolizeCommand() *cobra.Command {
	z := &symbolizing{}
	cmd := &cobra.Command{
		Use:   "symbolize FILE",
		Short: "Write names of user functions into a file, for other machines",
		Long: "Writes the names of user functions into FILE, from the program files and debug files of\n" +
			"this machine. Run it on the machine of the snapshot, soon after: it has the right files.\n" +
			"FILE may be - for standard input.\n\n" +
			"A name that the file holds already stays, unless more is known now (--lines). FILE is\n" +
			"replaced as a whole and keeps its compression; if nothing new is known, it is not touched.\n" +
			"A truncated file is refused. What follows the end of FILE is not written; so a FILE that has\n" +
			"such bytes is not replaced, nor one in gzip or base64.",
		Example: "  sudo stackshot symbolize FILE\n  stackshot symbolize --lines -o named.kcdata.zst FILE",
		Args:    takes(1, 1),
		RunE:    func(cmd *cobra.Command, args []string) error { return z.run(cmd, args[0]) },
	}
	z.flags(cmd)
	f := cmd.Flags()
	f.StringVarP(&z.output, "output", "o", "", "write to this `FILE` and leave the first as it is; - for standard output")
	f.BoolVar(&z.unwind, "unwind", false, "first unwind user stacks again from the stack bytes in the file: all stacks if take had --keep-stacks, else those that lacked an unwind table")
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
	d := &publish.Destination{Writer: fileWriter(z.timeout), Path: cmp.Or(z.output, name), Given: true, NoLastResort: true}
	c, err := readFile(name)
	if err == nil {
		err = c.reason(nil) // a file that was cut is refused
	}
	if err == nil {
		err = checkTarget(ctx, d)
	}
	if err != nil {
		return err
	}
	in, err := c.stackshot()
	if in.Plain != nil {
		err = c.reason(err)
	}
	if err != nil {
		return err
	}
	inPlace := name != stdoutName && d.Path != stdoutName && sameFile(d.Path, name)
	if inPlace && in.In != kcdata.TypeInvalid {
		return fmt.Errorf("%s: %s, and cannot be replaced: name another file (--output)", name, nestedIn(in))
	}
	if inPlace && c.Codings != nil {
		return fmt.Errorf("%s: in %s it cannot be replaced: name another file (--output)", name, strings.Join(c.Codings, ", in "))
	}
	if inPlace && c.Follows != "" {
		return fmt.Errorf("%s: %s, and would be lost: name another file (--output)", name, c.Follows)
	}
	c.sayFollows()
	named, tally, err := z.rewrite(ctx, in.Plain, c.Size)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	count := fmt.Sprintf("%d of %d addresses of user stacks have a function's name; addresses with a new name, module or line: %d", tally.Named, tally.Addresses, tally.New)
	if inPlace && bytes.Equal(named, c.Plain) {
		say(os.Stderr, "%s: %s; the file is as it was", name, count)
		return nil
	}
	out, err := publish.Compress(named, c.Envelope)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer out.Close()
	return save(ctx, d, name, out, count)
}

// sameFile reports whether two names are of one file, which is there.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return a == b || err == nil && err2 == nil && os.SameFile(x, y)
}

// rewrite gives a stackshot with names in it; plain itself if nothing is new. size is that of its file in bytes.
func (z *symbolizing) rewrite(ctx context.Context, plain []byte, size int64) (named []byte, tally symbolize.Tally, err error) {
	s, err := kcdata.ParseSnapshotWithin(plain, kcdata.Memory(size))
	if err != nil {
		return nil, tally, err
	}
	unwound := plain
	if z.unwind {
		unwound, err = graced(ctx, func() ([]byte, error) { return z.redo(plain, s) }) // it waits for files
		if err == nil {
			s, err = kcdata.ParseSnapshot(unwound)
		}
		if err != nil {
			return nil, tally, err
		}
	}
	names, skipped := z.resolve(ctx, s, false)
	if err := context.Cause(ctx); err != nil {
		return nil, tally, err
	}
	for _, what := range skipped[:min(len(skipped), maxNotSymbolized)] {
		say(os.Stderr, "not symbolized: %s", what)
	}
	if n := len(skipped) - maxNotSymbolized; n > 0 {
		say(os.Stderr, "not symbolized: %d more files", n)
	}
	return symbolize.Rewrite(unwound, s, names)
}

// save writes the file, and tells people where it is and what is new in it.
func save(ctx context.Context, d *publish.Destination, name string, out *publish.Spool, count string) error {
	size, err := out.Size()
	if err != nil {
		return err
	}
	where, err := d.Save(ctx, out)
	if where == "" {
		return errors.Join(err, fmt.Errorf("%s is as it was", name))
	}
	say(os.Stderr, "%s: %s", where, count)
	if where != stdoutName {
		say(os.Stderr, "wrote %s, %s", where, humanBytes(size))
	}
	return err
}

// Limits of unwinding a file again.
const (
	redoLimit  = 30 * time.Second // for reading unwind tables, whatever hangs
	redoFrames = 1000             // of a stack that was not cut
)

// redo unwinds the user stacks of a file again, from the stack bytes that take left in it.
func (z *symbolizing) redo(plain []byte, s *kcdata.Snapshot) ([]byte, error) {
	files := foreign.New(foreign.Options{Remote: z.remote, Command: fileReader})
	defer files.Close()
	u := stacks.Unwinder{Images: image.New(files, 0), Arch: s.Arch, Left: redoLimit, Frames: redoFrames}
	out, sum, err := u.Redo(plain, s, isLocal(s))
	if err != nil {
		return nil, err
	}
	say(os.Stderr, "unwound %d threads again, %d of them have other frames now", sum.Threads, sum.Changed)
	if sum.Short > 0 {
		say(os.Stderr, "callers may still be missing in %d of them: unwind tables were not read", sum.Short)
	}
	return out, nil
}
