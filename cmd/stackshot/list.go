package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"stackshot/internal/catalog"
	"stackshot/internal/screen"
	"stackshot/internal/show"
	"stackshot/internal/symbolize"
	"stackshot/internal/verdict"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// listing is one run of `stackshot list`.
type listing struct {
	paging
	format    string
	noVerdict bool
	done      atomic.Int64 // files that were read
	broken    int          // files that could not be read to their end
}

func listCommand() *cobra.Command {
	l := &listing{}
	cmd := &cobra.Command{
		Use:   "list [DIR]",
		Short: "List the files of a directory, each with what is wrong in it",
		Long: "Lists the snapshots of DIR, or of the current directory: time, host, threads, how long the\n" +
			"machine stood still, file, and in one line what is wrong. The newest capture comes first,\n" +
			"by the time that stands in the file. Files of all names are looked at, but only those that\n" +
			"begin as a snapshot does are read. A file that cannot be read is listed with the reason, and\n" +
			"the exit code is 3 then.",
		Example: "  stackshot list\n  stackshot list --no-verdict /var/crash\n  stackshot list --format json | jq '.files[0].verdict'",
		Args:    takes(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return l.run(append(args, ".")[0])
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	l.flag(cmd)
	cmd.Flags().StringVar(&l.format, "format", "text", "text or json")
	cmd.Flags().BoolVar(&l.noVerdict, "no-verdict", false, "do not say what is wrong in each file (takes less time)")
	completeWith(cmd, "format", "text", "json")
	return cmd
}

func (l *listing) run(dir string) error {
	if l.format != "text" && l.format != "json" {
		return &snapshot.OptionError{Option: "format", Value: l.format, Reason: "want text or json"}
	}
	done := progress(false, "looking for snapshots in "+dir)
	d, err := catalog.Read(dir)
	done()
	if err != nil {
		return err
	}
	if err := l.paging.run(os.Stdout, func(out io.Writer) error { return l.write(out, d) }); err != nil {
		return fmt.Errorf("write the list: %w", show.WithoutPath(err))
	}
	if l.broken > 0 {
		return partial(fmt.Errorf("%s: files that could not be read, or not to their end: %d", catalog.Absolute(dir), l.broken))
	}
	return nil
}

func (l *listing) write(out io.Writer, d *catalog.Directory) error {
	// On a terminal the list itself is the progress.
	defer progressOf(term.IsTerminal(int(os.Stdout.Fd())), time.Now(), func() string {
		return fmt.Sprintf("reading file %d of %d", l.done.Load()+1, len(d.Files))
	})()
	if l.format == "json" {
		return unlessGone(catalog.JSON(out, d, l.entries(d)))
	}
	return unlessGone(catalog.Text(out, d, l.entries(d), terminalOptions(os.Stdout).Width))
}

// entries reads one file after the other, and keeps none.
func (l *listing) entries(d *catalog.Directory) iter.Seq[*catalog.Entry] {
	return func(yield func(*catalog.Entry) bool) {
		for _, f := range d.Files {
			e := &catalog.Entry{File: f}
			if f.Err == nil {
				l.fill(e)
			}
			if e.Err != nil {
				l.broken++
			}
			l.done.Add(1)
			if !yield(e) {
				return
			}
		}
	}
}

// fill reads e's file. If that breaks off, e is of what came before.
func (l *listing) fill(e *catalog.Entry) {
	c, err := readFile(e.Path)
	var s *kcdata.Snapshot
	if err == nil {
		s, err = c.snapshot()
		e.Follows = c.Follows
	}
	e.Err = withoutName(err, e.Path)
	if s == nil {
		return
	}
	if e.Fill(s); !l.noVerdict {
		e.Verdict = inBrief(s)
	}
}

// inBrief is the first thing that is wrong in s, or that nothing is. User stacks have the names
// that the file holds.
func inBrief(s *kcdata.Snapshot) string {
	symbolize.Names(s, resolved(nil))
	return screen.Brief(s, verdict.Judge(s, defaultMinWait))
}

// withoutName is an error without the name of its file, which the list shows already.
func withoutName(err error, name string) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), name+": "))
}
