package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"stackshot/internal/catalog"
	"stackshot/internal/show"
)

// newest has the flag of the commands that can read the newest capture of a directory.
type newest struct{ dir string } // --newest

func (n *newest) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.dir, "newest", "", "read the newest capture in `DIR`, by the time in each file")
	if err := cmd.MarkFlagDirname("newest"); err != nil {
		panic(err) // a flag that is not there
	}
}

// choose is the file that the command line names: that of args, or the newest of --newest, or
// without both the newest in the directory other. With other "" it may name none.
func (n *newest) choose(args []string, other string) (name string, err error) {
	switch {
	case len(args) > 0 && n.dir != "":
		return "", usage(fmt.Sprintf("--newest %s: %q is named already", n.dir, args[0]))
	case len(args) > 0:
		return args[0], nil
	case n.dir != "":
		return newestIn(n.dir)
	case other != "":
		return newestIn(other)
	}
	return "", nil
}

// maxUnreadable bounds the lines about files that may be newer.
const maxUnreadable = 3

// newestIn finds the newest capture of a directory, and says which it is, and which files it knows
// nothing of.
func newestIn(dir string) (string, error) {
	done := progress(false, "looking for snapshots in "+dir)
	d, err := catalog.Read(dir)
	done()
	if err != nil {
		return "", err
	}
	bad := d.Unreadable()
	for _, f := range bad[:min(len(bad), maxUnreadable)] {
		say(os.Stderr, "%s is left out: %v", show.Clean(f.Path), f.Err)
	}
	if n := len(bad) - maxUnreadable; n > 0 {
		say(os.Stderr, "and %s are left out", show.Count(n, "more file"))
	}
	if d.Closed > 0 {
		say(os.Stderr, "%s could not be opened, and may be newer", show.Count(d.Closed, "other file"))
	}
	f := d.Newest()
	if f == nil {
		return "", errors.New("no snapshot in " + show.Clean(catalog.Absolute(dir)) + ": name a file, or a directory by --newest DIR")
	}
	say(os.Stderr, "the newest of %s in %s is %s", show.Count(len(d.Files), "snapshot"), show.Clean(catalog.Absolute(dir)), show.Clean(f.Path))
	return f.Path, nil
}
