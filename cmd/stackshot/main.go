// Stackshot takes a snapshot of every task and thread of a machine, and reads
// such snapshots.
//
//	stackshot                 take one, name it after host and time, show the first screen
//	stackshot FILE            the same as stackshot report FILE
//	stackshot hang [FILE]     say what hangs, in a file or in a snapshot that it takes
//	stackshot take -o FILE    take one with options, show the report
//	stackshot arm             stay, and have the kernel record at a SysRq and at a panic
//	stackshot take --count N  take N, a file each, no report
//	stackshot report [FILE]   show the report of a file, or of the newest here
//	stackshot symbolize FILE  write the names of user functions into a file
//	stackshot list [DIR]      list the files of a directory, newest first, with what is wrong in each
//	stackshot latency FILE... show what captures cost, and how long threads have waited
//	stackshot extract CORE    get the snapshot of a panic out of a dump of memory
//	stackshot dump FILE       show every item of a file
//	stackshot doctor          say what works on this machine, and what is lost where something does not
//
// Exit codes: 0 whole; 1 failed; 2 usage; 3 partial: the result is incomplete, or was
// saved somewhere else, or nothing was stopped, or no thread matches --where; 4 (of hang)
// something hangs, which goes before 3.
//
// What the command promises on a machine whose disks and mounts may hang:
//
//	C1  The file is written before names are looked up for the report: that reads
//	    program files of other people, and may take more memory than there is. A
//	    target that does not answer keeps the report waiting for targetPatience (the
//	    commands that name the file then follow the report),
//	    but as long as it takes if a program reads where the file is, and in a series.
//	C2  No thread of this process opens, looks at or writes the target: a
//	    helper process does (helper.go). If none can be started, a thread does,
//	    but only if no file system on the way may hang. internal/publish has the
//	    details, also of C3 and C4.
//	C3  A snapshot that was taken is not lost: if the target cannot be written,
//	    the file goes to memory (/dev/shm), and a message says so.
//	C4  Under its name a file is whole or absent.
//	C5  Nothing that comes from the machine reaches a terminal raw.
//	C6  No thread of this process touches program files of the machine, for the
//	    reason of C2: reader processes do (helper.go), with the exception of C2.
//	C7  After a signal the command ends within a second, whatever hangs or does
//	    not begin; if nobody reads its output, within lastResort.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stackshot/internal/licenses"
	"stackshot/internal/show"
	"stackshot/internal/topology"
	"stackshot/snapshot"
)

func main() { os.Exit(run(os.Args[1:])) }

// run executes one command line and gives its exit code.
func run(args []string) int {
	root := newRoot()
	cmd := root
	begun := false // an error before a command begins is one of the command line
	root.PersistentPreRun = func(*cobra.Command, []string) { begun = true }
	args, err := wordsOf(root, args)
	if err == nil {
		root.SetArgs(args)
		cmd, err = root.ExecuteC()
	}
	if err == nil {
		return exitWhole
	}
	code := exitCode(err)
	if !begun {
		code = exitUsage
	}
	if !errors.Is(err, errSaid) {
		say(os.Stderr, "%v", err)
	}
	if code == exitUsage {
		fmt.Fprintf(os.Stderr, "Run '%s --help' for usage.\n", cmd.CommandPath())
	}
	return code
}

// Exit codes.
const (
	exitWhole      = 0
	exitFailed     = 1
	exitUsage      = 2
	exitIncomplete = 3
	exitHang       = 4
)

// errSaid is the error of a result that speaks for itself: the exit code says it, no message.
var errSaid = errors.New("said")

// exitError is an error that leads to an exit code of its own.
type exitError struct {
	error
	code int
}

func (e *exitError) Unwrap() error { return e.error }

// partial is an error that says what is missing from a result that is there.
func partial(err error) error { return &exitError{err, exitIncomplete} }

// usage is an error about the command line.
func usage(text string) error { return &exitError{errors.New(text), exitUsage} }

func exitCode(err error) int {
	var coded *exitError
	switch {
	case err == nil:
		return exitWhole
	case isUsage(err):
		return exitUsage
	case errors.As(err, &coded):
		return coded.code
	}
	return exitFailed
}

// isUsage reports whether an error of a package below is about a flag's value.
func isUsage(err error) bool {
	var (
		option *snapshot.OptionError
		cpu    *topology.CPUError
	)
	return errors.As(err, &option) || errors.As(err, &cpu) ||
		errors.Is(err, topology.ErrBadList) || errors.Is(err, topology.ErrBadClass) || errors.Is(err, topology.ErrNoneToStop)
}

func newRoot() *cobra.Command {
	t := newTake()
	t.firstScreen = true
	version := false // --version
	root := &cobra.Command{
		Use:   "stackshot [FILE]",
		Short: "Stop the machine for milliseconds, record every task and thread, say what is stuck",
		Long: "Stackshot stops every CPU for a few milliseconds, records every task and thread with its\n" +
			"kernel and user stack, lets the machine run on, and says what is stuck, where, and who is\n" +
			"to blame. Run it as root on a machine that hangs: it makes one file, which can be read\n" +
			"later and elsewhere, without rights.\n\n" +
			"Without a command it takes a snapshot into a file named after host and time in the\n" +
			"current directory, and shows the first screen: what is stuck, and why. The options of\n" +
			"'stackshot take' hold here too. 'stackshot FILE' is 'stackshot report FILE', with its options.",
		Example: "  sudo stackshot         take a snapshot, see in one screen what is wrong\n" +
			"  sudo stackshot hang    the same, and who waits for whom, with stacks\n" +
			"  stackshot report       read the newest file here, with every stack\n" +
			"  stackshot list         the files here, each with what is wrong in it\n" +
			"  stackshot doctor       what works on this machine, and what does not",
		Args:          takes(0, 0),
		SilenceErrors: true,
		SilenceUsage:  true,
		// Topics, which cobra leaves out, and files.
		ValidArgsFunction: cobra.FixedCompletions([]cobra.Completion{"where"}, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return showVersion()
			}
			return t.run(cmd)
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.Flags().BoolVar(&version, "version", false, "show the version")
	t.flags(root)
	showOnly(root, "output", "pid", "quiet", "version")
	colorFlag(root)
	root.AddGroup(&cobra.Group{ID: "take", Title: "Take a snapshot:"}, &cobra.Group{ID: "read", Title: "Read snapshots:"},
		&cobra.Group{ID: "about", Title: "About the machine and this program:"})
	group(root, "take", takeCommand(), hangCommand(), armCommand())
	group(root, "read", reportCommand(), listCommand(), latencyCommand(), symbolizeCommand(), extractCommand(), dumpCommand())
	group(root, "about", doctorCommand(), versionCommand())
	root.SetHelpCommandGroupID("about")
	root.SetCompletionCommandGroupID("about")
	root.InitDefaultCompletionCmd()
	mendHelp(root)
	root.AddCommand(whereTopic(), manCommand(), saveCommand(), readCommand())
	return root
}

// group adds commands under a heading of the help.
func group(root *cobra.Command, id string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// showOnly leaves flags of cmd out of its help, but for those named.
func showOnly(cmd *cobra.Command, shown ...string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shown, f.Name) })
}

// completeWith has the shell complete a flag with one of some values.
func completeWith(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // a flag that is not there
	}
}

// say writes a message for people, with the program's name before each line, and nothing in
// it raw (C5).
func say(w io.Writer, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintf(w, "stackshot: %s\n", show.Clean(line))
	}
}

func versionCommand() *cobra.Command {
	licences := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version, or all licences",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if licences {
				_, err := os.Stdout.WriteString(licenses.Text)
				return err
			}
			return showVersion()
		},
	}
	cmd.Flags().BoolVar(&licences, "licenses", false, "show the licences of stackshot and of everything compiled into it")
	return cmd
}

func showVersion() error {
	_, err := fmt.Printf("stackshot %s (%s, %s/%s)\n", snapshot.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
