// Stackshot takes a snapshot of every task and thread of a machine, and reads
// such snapshots.
//
//	stackshot                 take one, name it after host and time, show the first screen
//	stackshot take -o FILE    take one with options, show the report
//	stackshot take --count N  take some, a file each, no report
//	stackshot report FILE     show the report of a file
//	stackshot symbolize FILE  write the names of user stacks into a file
//	stackshot latency FILE... show what captures cost, and how long threads have waited
//	stackshot dump FILE       show every item of a file
//	stackshot doctor          what this machine allows, and what it costs where it does not
//
// Exit codes: 0 whole; 1 failed; 2 usage; 3 partial: the result is incomplete, or was
// saved somewhere else, or nothing was stopped.
//
// What the command itself promises, on a machine on which disks and mounts may
// hang:
//
//	C1  The report is made from memory and printed before anything touches the
//	    target of the file; whoever does not read it keeps the file waiting for
//	    readerPatience.
//	C2  No thread of this process opens, looks at or writes the target: a
//	    helper process does (helper.go), or a thread where no file system on the
//	    way may hang; internal/publish has the details, of C3 and C4 too.
//	C3  A snapshot that was taken is not lost: what the target refuses goes to
//	    memory (/dev/shm), and a message says so.
//	C4  Under its name a file is whole or absent.
//	C5  Nothing that comes from the machine reaches a terminal raw.
//	C6  No thread of this process touches program files of the machine, for the
//	    reason of C2: reader processes do (helper.go), but as in C2.
//	C7  A signal is answered within a second, whatever hangs or does not begin;
//	    where nobody reads our output, within lastResort.
package main

import (
	"fmt"
	"io"
	"os"
	"stackshot/internal/show"
	"strings"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:])) }

// run executes one command line and gives its exit code.
func run(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	// What fails before a command begins is the command line.
	begun := false
	root.PersistentPreRun = func(*cobra.Command, []string) { begun = true }
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitWhole
	}
	code := exitCode(err)
	if !begun {
		code = exitUsage
	}
	complain(os.Stderr, err)
	if code == exitUsage {
		fmt.Fprintf(os.Stderr, "Run '%s --help' for usage.\n", cmd.CommandPath())
	}
	return code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "stackshot",
		Short: "Stop the machine for milliseconds, record every task and thread, say what is stuck",
		Long: "Stackshot stops every CPU for a few milliseconds, records every task and thread with its\n" +
			"kernel stack, lets the machine run on, and reports what is stuck.\n\n" +
			"Alone it is 'stackshot take' into a file named after host and time in the current\n" +
			"directory, and shows the first screen of the report.",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := newTake()
			t.firstScreen = true
			return t.run(cmd)
		},
	}
	root.AddCommand(takeCommand(), reportCommand(), symbolizeCommand(), latencyCommand(), dumpCommand(), doctorCommand(), versionCommand(), saveCommand(), readCommand())
	return root
}

// say writes one message for people: one line, its program's name in front,
// nothing in it raw (C5).
func say(w io.Writer, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintf(w, "stackshot: %s\n", show.Clean(line))
	}
}
