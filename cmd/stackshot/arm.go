package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"stackshot/internal/arm"
	"stackshot/internal/bpf"
	"stackshot/internal/publish"
	"stackshot/internal/show"
	"stackshot/internal/urgency"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// arming is one run of `stackshot arm`. One goroutine runs it.
type arming struct {
	*take
	options arm.Options
	key     string
	noSysrq bool
	noPanic bool
	dir     string
	frames  string // path of the list of frames; "": none is written

	armed         *arm.Armed
	captures      int
	spared        int // files in the place of last resort
	lost, lacking int // snapshots that are nowhere; that lack something
}

func newArming() *arming {
	a := &arming{take: newTake(), key: string(rune(arm.DefaultKey)), dir: "."}
	a.firstScreen = true
	return a
}

func armCommand() *cobra.Command {
	a := newArming()
	cmd := &cobra.Command{
		Use:   "arm",
		Short: "Stay, and have the kernel itself record all threads at a SysRq and at a panic",
		Long: "Attach to the kernel's SysRq and panic, and stay until SIGINT or SIGTERM. When the SysRq key\n" +
			"comes, the kernel records every thread into memory that is set aside; each time, this\n" +
			"command writes a file (mode 0600) and shows the first screen. When the machine panics, the\n" +
			"kernel does the same with nobody's help: `stackshot extract` gets it out of a crash dump.\n\n" +
			"Nothing is stopped: threads that run on other CPUs have no kernel stack in the file. Before\n" +
			"Linux 6.7 the key has this command take an ordinary snapshot, and a panic records nothing.\n\n" +
			"A key of a keyboard or serial line counts if kernel.sysrq is 1 or has bit 8; a write to\n" +
			"/proc/sysrq-trigger always does. `stackshot doctor` says what can be hooked here.",
		Example: "  sudo stackshot arm --dir /var/crash\n  echo y | sudo tee /proc/sysrq-trigger",
		Args:    takes(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&a.key, "sysrq", a.key, "the SysRq `KEY`, one letter that the kernel does not use itself")
	f.BoolVar(&a.noSysrq, "no-sysrq", false, "be there for a panic alone")
	f.BoolVar(&a.noPanic, "no-panic", false, "be there for the SysRq alone")
	f.DurationVar(&a.options.Pause, "panic-pause", arm.DefaultPause, "longest time for the kernel to record, 1ms to 5s")
	f.Var(&a.buffer, "buffer", "memory for the records, K, M or G may follow\n(default: for twice the threads that there are, 4M at least)")
	f.StringVar(&a.dir, "dir", a.dir, "directory of the files")
	f.StringVar((*string)(&a.take.options.UserStacks), "user-stacks", string(snapshot.UserStacksAuto), "auto, fp (only the frame-pointer chain: callers may be missing) or off")
	f.StringVar(&a.take.options.Wait, "wait", snapshot.WaitOn, "on, or off: do not record what each thread waits for")
	f.BoolVar(&a.take.options.Redact, "redact", false, "leave out command-line arguments, mappings, register values, user stacks and the panic's message; make kernel addresses relative to _text")
	f.StringVar(&a.compression, "compress", a.compression, "zstd, zlib (readable by Apple's decoder) or none")
	f.DurationVar(&a.timeout, "write-timeout", a.timeout, "longest time to wait for the target's file system")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "show no first screens and no progress, only what is armed, and errors")
	a.naming.flagOff(cmd)
	completeWith(cmd, "user-stacks", string(snapshot.UserStacksAuto), string(snapshot.UserStacksFP), string(snapshot.UserStacksOff))
	completeWith(cmd, "wait", snapshot.WaitOn, snapshot.WaitOff)
	completeWith(cmd, "compress", "zstd", "zlib", "none")
	return cmd
}

var userModes = map[snapshot.UserStacks]int{snapshot.UserStacksOff: bpf.UserOff, snapshot.UserStacksFP: bpf.UserFP, snapshot.UserStacksAuto: bpf.UserAuto}

// checkArming fills in the options that are not flags of their own.
func (a *arming) checkArming(cmd *cobra.Command) error {
	o := &a.options
	mode, ok := userModes[a.take.options.UserStacks]
	wait := a.take.options.Wait
	_, packs := envelopes[a.compression]
	switch {
	case !ok:
		return &snapshot.OptionError{Option: "user-stacks", Value: string(a.take.options.UserStacks), Reason: "want auto, fp or off"}
	case wait != snapshot.WaitOn && wait != snapshot.WaitOff:
		return &snapshot.OptionError{Option: "wait", Value: wait, Reason: "want on or off"}
	case !packs:
		return &snapshot.OptionError{Option: "compress", Value: a.compression, Reason: "want zstd, zlib or none"}
	case a.timeout <= 0:
		return &snapshot.OptionError{Option: "write-timeout", Value: a.timeout.String(), Reason: "want more than 0"}
	case a.dir == "":
		return &snapshot.OptionError{Option: "dir", Value: `""`, Reason: "want a value"}
	case len(a.key) != 1:
		return &snapshot.OptionError{Option: "sysrq", Value: fmt.Sprintf("%q", a.key), Reason: "want one character"}
	case a.noSysrq && a.noPanic:
		return usage("--no-sysrq and --no-panic: nothing is left to be armed for")
	case a.noSysrq && cmd.Flags().Changed("sysrq"):
		return usage("--sysrq and --no-sysrq exclude each other")
	}
	o.Key, o.Sysrq, o.Panic, o.Buffer = a.key[0], !a.noSysrq, !a.noPanic, int64(a.buffer)
	o.UserStacks, o.Wait, o.Redact, o.Version = mode, wait == snapshot.WaitOn, a.take.options.Redact, snapshot.Version()
	return nil
}

func (a *arming) run(cmd *cobra.Command) error {
	if err := a.checkArming(cmd); err != nil {
		return err
	}
	if err := errors.Join(liftLimits(), saveThreads()); err != nil {
		return err
	}
	a.take.watchUrgency()
	urgency.Prepare() // what is refused now, is tried again at each capture
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	a.take.options.FileReader = fileReader
	if err := checkTarget(ctx, &publish.Destination{Writer: fileWriter(a.timeout), Path: a.in("stackshot.frames"), Given: true, NoLastResort: true}); err != nil {
		return err
	}
	var err error
	done := progress(a.quiet, "arming the machine")
	a.armed, err = graced(ctx, func() (*arm.Armed, error) { return arm.Open(a.options) })
	done()
	if err != nil {
		return err
	}
	a.writeFrames(ctx)
	a.sayArmed()
	debug.FreeOSMemory() // the kernel's types and symbols are not needed until the next capture
	err = a.serve(ctx)
	return a.end(ctx, err)
}

func (a *arming) in(name string) string { return filepath.Join(a.dir, name) }

// writeFrames leaves the list of frames beside the captures.
func (a *arming) writeFrames(ctx context.Context) {
	if !a.armed.Walks() {
		return
	}
	host, _ := os.Hostname()
	a.frames = a.in(fmt.Sprintf("stackshot-%s-%s.frames", publish.SafeName(host), a.armed.BootID()))
	spool, err := publish.Copy(a.armed.FramesFile())
	if err == nil {
		d := &publish.Destination{Writer: fileWriter(a.timeout), Path: a.frames, Given: true, NoLastResort: true}
		_, err = d.Save(ctx, spool)
		spool.Close()
	}
	if err != nil {
		say(os.Stderr, "!! the list of frames is not written: %v (extraction then searches the dump)", err)
		a.frames = ""
	}
}

// events by their words in the line.
var eventWords = map[string]string{bpf.EventSysrq: "SysRq", bpf.EventPanic: "panic", bpf.EventCrash: "crash"}

// armedLine says what is attached, with which memory.
func (a *arming) armedLine() string {
	var parts []string
	for _, h := range a.armed.Hooks {
		if h.Err != nil {
			continue
		}
		what := eventWords[h.Event]
		if h.Event == bpf.EventSysrq {
			what += " " + a.key
			if a.armed.Wakes {
				what += " (an ordinary capture)"
			}
		}
		parts = append(parts, what+" by "+h.By+"/"+h.Function)
	}
	if n := a.armed.Bytes(); n > 0 {
		parts = append(parts, fmt.Sprintf("region %.1f MiB for %s threads", float64(n)/(1<<20), show.Thousands(uint64(a.armed.Threads))))
	}
	if a.frames != "" {
		parts = append(parts, "frames in "+a.frames)
	}
	return "armed: " + strings.Join(parts, "; ")
}

func (a *arming) sayArmed() {
	say(os.Stderr, "%s", a.armedLine())
	for _, h := range a.armed.Hooks {
		if h.Err != nil {
			say(os.Stderr, "!! %s is not hooked: %s", eventWords[h.Event], oneLine(h.Err))
		}
	}
	for _, w := range a.armed.Warnings {
		say(os.Stderr, "!! %s", strings.ReplaceAll(w, "\n", "; "))
	}
	hooked := slices.ContainsFunc(a.armed.Hooks, func(h bpf.Hook) bool { return h.Event == bpf.EventSysrq && h.Err == nil })
	if mask := a.armed.Mask(); hooked && !arm.LetsThrough(mask) {
		say(os.Stderr, "!! kernel.sysrq is %d: SysRq %s of a keyboard or serial line is refused (want 1, or bit 8); /proc/sysrq-trigger is not", mask, a.key)
	}
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (a *arming) serve(ctx context.Context) error {
	for {
		e, err := a.armed.Next(ctx)
		if err != nil {
			return err
		}
		for _, n := range e.Notes {
			say(os.Stderr, "!! %s", n)
		}
		switch {
		case e.Image != nil:
			a.save(ctx, e.Image)
		case e.Capture:
			a.ordinary(ctx)
		default:
			continue
		}
		debug.FreeOSMemory()
	}
}

// removeLimit is for the list of frames, from when the programs are detached: the kernel may take
// seconds for that.
const removeLimit = 5 * time.Second

// end says what came, and removes the list of frames: the region is gone with us.
func (a *arming) end(ctx context.Context, err error) error {
	tally := a.armed.Tally()
	closeErr := a.armed.Close()
	if a.frames != "" {
		removing, done := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
		w := fileWriter(a.timeout)
		closeErr = errors.Join(closeErr, w.Remove(removing, a.frames))
		done()
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		err = nil // that is how it ends
	}
	say(os.Stderr, "disarmed: %s; not saved in time: %s, refused by kernel.sysrq: %s", show.Count(a.captures, "capture"),
		show.Thousands(tally.Nested), show.Thousands(tally.Refused))
	if err = errors.Join(err, closeErr); err != nil {
		return err
	}
	return a.shortfall(tally)
}

// shortfall is an error that says what is missing from all that was asked for.
func (a *arming) shortfall(t arm.Tally) error {
	var errs []error
	for _, l := range []struct {
		n    uint64
		what string
	}{
		{uint64(a.lost), "captures are lost"},
		{uint64(a.spared), "captures were saved somewhere else"},
		{uint64(a.lacking), "captures are incomplete"},
		{t.Nested, "requests have no capture"},
	} {
		if l.n > 0 {
			errs = append(errs, fmt.Errorf("%d %s", l.n, l.what))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return partial(errors.Join(errs...))
}

// target is where the file of a capture goes.
func (a *arming) target(at time.Time) (*publish.Destination, kcdata.Envelope) {
	envelope := envelopes[a.compression]
	name := publish.FileName(at, envelope)
	return &publish.Destination{Writer: fileWriter(a.timeout), Path: a.in(name), LastResort: name, NoLastResort: a.spared >= publish.MaxLastResort}, envelope
}
