package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"stackshot/internal/publish"
	"stackshot/internal/urgency"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// take is one run of the command.
type take struct {
	options     snapshot.Options
	pids        []int
	buffer      byteSize
	output      string
	compression string
	timeout     time.Duration
	json        bool
	self        bool
	trace       bool
	quiet       bool
	firstScreen bool          // show the first screen alone
	count       int           // captures; 0: until interrupted
	interval    time.Duration // of a series, start to start; 0: chosen by the pause (series_pace.go)
	naming      naming
	own         *notes // by watchUrgency

	// render prepares what is shown on out of a capture whose file is at where ("": nowhere), and
	// returns what writes it. skipped are the files that were not symbolized.
	render   func(out *os.File, s *kcdata.Snapshot, where string, skipped []string) (write func(w io.Writer) error)
	late     func(where string) error // by render: writes the commands that name the file, for which there was no file yet; nil: there are none
	patience time.Duration            // how long a target that does not answer may keep the report waiting
}

func newTake() *take {
	t := &take{compression: kcdata.EnvelopeZstd.String(), timeout: 10 * time.Second, naming: naming{quick: true}, count: 1, patience: targetPatience}
	t.render = t.report
	return t
}

func takeCommand() *cobra.Command {
	t := newTake()
	cmd := &cobra.Command{
		Use:   "take",
		Short: "Take a snapshot of the machine and show the report",
		Long: "Take a snapshot, write the file (mode 0600), then show the report.\n\n" +
			"A file named by -o is replaced if it is a regular file of the same user; a symbolic link,\n" +
			"a directory, a special file, a path that is not there or that you may not write is refused.\n" +
			"If the file system refuses (read-only, full, broken) or does not answer, or a signal ends\n" +
			"the wait for it, the snapshot goes to /dev/shm, and the exit code is 3. It is 3 as well if a\n" +
			"task or a CPU is missing, or if nothing could be stopped (unless --engine procfs asked for that).\n\n" +
			"With --count, each capture gets a file of its own: in the directory named by -o, or, for\n" +
			"-o FILE.ext, under the names FILE-0001.ext and so on.",
		Example: "  sudo stackshot take\n  sudo stackshot take --pid 4711 -o before.kcdata.zst\n  sudo stackshot take --count 10 --interval 1s -o DIR/",
		Args:    takes(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return t.run(cmd) },
	}
	t.flags(cmd)
	return cmd
}

// flags are those of `stackshot take`.
func (t *take) flags(cmd *cobra.Command) {
	t.captureFlags(cmd)
	f := cmd.Flags()
	f.IntSliceVar(&t.pids, "pid", nil, "record only this task, given by its `ID` or that of one of its threads; may be repeated")
	f.BoolVar(&t.json, "json", false, "print one JSON object about the capture instead of the report")
	f.BoolVar(&t.self, "self", false, "show stackshot's own threads in the report")
	f.BoolVarP(&t.quiet, "quiet", "q", false, "show no report and no progress, only errors")
	t.naming.flagOff(cmd)
	f.IntVar(&t.count, "count", 1, "captures to make, each into a file of its own; 0: until interrupted")
	f.DurationVar(&t.interval, "interval", 0, "time from one capture's start to the next one's\n(default: the machine stands still for at most 5 % of the time)")
}

// captureFlags say how to capture and where the file goes, for all commands that do.
func (t *take) captureFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&t.output, "output", "o", "", "write to `FILE`; - for standard output, the report then goes to standard error\n(default: host and time, in the current directory)")
	f.StringVar(&t.options.Engine, "engine", snapshot.EngineAuto, "trap (interrupts off), pull (SCHED_FIFO), procfs (nothing is stopped), or auto: the first that works")
	f.StringVar(&t.options.CPUs, "cpus", "", "`LIST` of the CPUs that record, as in 0-3,5 (default: all that are stopped and not throttled)")
	f.StringVar(&t.options.CPUClass, "cpu-class", "", "classes of the CPUs, as in `0-3=P,4-7=E` (default: what the machine says)")
	f.BoolVar(&t.options.StopIsolated, "stop-isolated", false, "stop isolcpus and nohz_full CPUs too")
	f.Var(&t.buffer, "buffer", "memory for the records of the first try, K, M or G may follow (default: estimated)")
	f.DurationVar(&t.options.MaxPause, "max-pause", 0, "longest time to stop the machine, all tries together (default: 100ms with interrupts off, else 250ms; at most 2s with interrupts off)")
	f.DurationVar(&t.options.ArrivalBudget, "arrival-budget", 10*time.Millisecond, "time for every CPU to come to the stop")
	f.StringVar(&t.compression, "compress", t.compression, "zstd, zlib (readable by Apple's decoder) or none")
	f.StringVar(&t.options.Latency, "latency", snapshot.LatencyTask, "what to time besides the capture: off, task or thread (adds to the pause)")
	f.StringVar((*string)(&t.options.UserStacks), "user-stacks", string(snapshot.UserStacksAuto), "auto, fp (only the frame-pointer chain: callers may be missing) or off")
	f.IntVar(&t.options.StackBytes, "stack-bytes", 24<<10, "most bytes to copy of a user stack, 1024 to 65536")
	f.IntVar(&t.options.UserFrames, "user-frames", 256, "most links to follow in a frame-pointer chain, 1 to 1000")
	f.BoolVar(&t.options.KeepStacks, "keep-stacks", false, "leave the copied bytes of user stacks in the file, so that they can be unwound again elsewhere (they may hold secrets)")
	f.StringVar(&t.options.Wait, "wait", snapshot.WaitOn, "on, or off: do not record what each thread waits for (kernel locks and their owners, futexes, open files and who has their other ends)")
	f.BoolVar(&t.trace, "trace", false, "keep the trace of stackshot's own last events in the file (kept anyway if something goes wrong)")
	f.BoolVar(&t.options.Redact, "redact", false, "leave out command-line arguments, mappings, register values, user stacks, network addresses, mount points and names of disks; make kernel addresses relative to _text")
	f.BoolVar(&t.options.RemoteFiles, "remote-files", false, "read program files on FUSE and network file systems too, for build-ids and unwind tables")
	f.DurationVar(&t.timeout, "write-timeout", t.timeout, "longest time to wait for the target's file system")
	f.DurationVar(&t.options.LockWait, "lock-wait", 5*time.Second, "longest time to wait in line for other captures: only one at a time stops the machine")
	completeWith(cmd, "engine", snapshot.EngineAuto, snapshot.EngineTrap, snapshot.EnginePull, snapshot.EngineProcfs)
	completeWith(cmd, "latency", snapshot.LatencyOff, snapshot.LatencyTask, snapshot.LatencyThread)
	completeWith(cmd, "user-stacks", string(snapshot.UserStacksAuto), string(snapshot.UserStacksFP), string(snapshot.UserStacksOff))
	completeWith(cmd, "wait", snapshot.WaitOn, snapshot.WaitOff)
	completeWith(cmd, "compress", "zstd", "zlib", "none")
}

// envelopes by the values of --compress.
var envelopes = map[string]kcdata.Envelope{
	"zstd": kcdata.EnvelopeZstd, "zlib": kcdata.EnvelopeZlib, "none": kcdata.EnvelopeNone,
}

// check refuses values that the packages below would take for "not given", and flags that
// exclude each other.
func (t *take) check(cmd *cobra.Command) error {
	if _, ok := envelopes[t.compression]; !ok {
		return &snapshot.OptionError{Option: "compress", Value: t.compression, Reason: "want zstd, zlib or none"}
	}
	for _, name := range []string{"max-pause", "arrival-budget", "lock-wait", "write-timeout", "interval"} {
		if d, _ := cmd.Flags().GetDuration(name); d <= 0 && cmd.Flags().Changed(name) {
			return &snapshot.OptionError{Option: name, Value: d.String(), Reason: "want more than 0"}
		}
	}
	for _, name := range []string{"stack-bytes", "user-frames"} {
		if n, _ := cmd.Flags().GetInt(name); n == 0 && cmd.Flags().Changed(name) { // the package's "not given"
			return &snapshot.OptionError{Option: name, Value: "0", Reason: "want more than 0"}
		}
	}
	for _, name := range []string{"engine", "cpus", "cpu-class", "output", "latency", "user-stacks", "wait"} {
		if s, _ := cmd.Flags().GetString(name); s == "" && cmd.Flags().Changed(name) {
			return &snapshot.OptionError{Option: name, Value: `""`, Reason: "want a value"}
		}
	}
	switch {
	case t.json && t.output == stdoutName:
		return usage("--json and -o - both want standard output")
	case t.count < 0:
		return &snapshot.OptionError{Option: "count", Value: fmt.Sprint(t.count), Reason: "want 0 or more"}
	case t.count == 1 && t.interval != 0:
		return usage("--interval needs --count: how many captures")
	case t.count != 1 && t.output == stdoutName:
		return usage("--count and -o -: standard output takes one snapshot")
	}
	return nil
}

func (t *take) run(cmd *cobra.Command) error {
	if err := t.check(cmd); err != nil {
		return err
	}
	if err := liftLimits(); err != nil {
		return err
	}
	if err := saveThreads(); err != nil {
		return err
	}
	t.hurry()
	defer urgency.End()
	signal.Ignore(syscall.SIGPIPE) // it would end the process before the file is written
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	t.options.Buffer, t.options.FileReader, t.options.Tasks = int64(t.buffer), fileReader, len(t.pids)
	envelope := envelopes[t.compression]
	if t.count != 1 {
		return t.runSeries(ctx, envelope)
	}
	spare := publish.FileName(time.Now(), envelope)
	d := &publish.Destination{Writer: fileWriter(t.timeout), Path: cmp.Or(t.output, spare), LastResort: spare, Given: t.output != ""}
	if err := checkTarget(ctx, d); err != nil {
		return err
	}
	shot, err := t.capture(ctx)
	if err != nil {
		return err
	}
	return t.deliver(ctx, d, envelope, shot)
}

// byteSize is a flag in bytes: digits and K, M or G, powers of 1024.
type byteSize int64

var errSize = errors.New("want a positive number of bytes, K, M or G may follow")

func (b *byteSize) String() string {
	if *b == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type is the word for the value in --help.
func (b *byteSize) Type() string { return "SIZE" }

// Set reads a value.
func (b *byteSize) Set(s string) error {
	digits, shift := s, 0
	if i := len(s) - 1; i > 0 {
		if k := strings.IndexByte("KMG", s[i]&^0x20); k >= 0 {
			digits, shift = s[:i], 10*(k+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n == 0 || n > math.MaxInt64>>shift {
		return errSize
	}
	*b = byteSize(n << shift)
	return nil
}
