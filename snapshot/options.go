package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"stackshot/internal/capture"
	"stackshot/internal/engine"
	"stackshot/kcdata"
)

// Engine names. EngineAuto takes the best that the running kernel offers.
const (
	EngineAuto   = "auto"
	EngineTrap   = capture.Trap
	EnginePull   = capture.Pull
	EngineProcfs = capture.Procfs
)

// Isolation levels: how still the world stood.
const (
	IsolationIRQOff     = capture.IRQOff     // nothing ran but NMIs
	IsolationPreemptOff = capture.PreemptOff // interrupts ran
	IsolationFIFO       = capture.FIFO       // interrupts ran, no ordinary task did
	IsolationNone       = capture.None       // everything ran
)

// What is timed beside the capture itself.
const (
	LatencyOff    = "off"
	LatencyTask   = "task"
	LatencyThread = "thread" // costs the pause some hundred ns a thread
)

// Whether it is recorded what each thread waits for, and who has it.
const (
	WaitOn  = "on"
	WaitOff = "off"
)

// latencyLevels are what cfg_latency calls them (internal/bpf/shared.h).
var latencyLevels = map[string]int{LatencyOff: engine.LevelOff, LatencyTask: engine.LevelTask, LatencyThread: engine.LevelThread}

// Options are constant for the life of a Session.
type Options struct {
	Engine       string // EngineAuto, EngineTrap, EnginePull, EngineProcfs; "": auto
	CPUs         string // CPUs that record, a CPU list; "": every stopped CPU that is not throttled
	CPUClass     string // "0=P,1=E"; "": as sysfs says
	StopIsolated bool   // stop isolcpus and nohz_full CPUs too

	Buffer    int64 // bytes for the records of the first try; 0: estimated
	MaxBuffer int64 // bytes it may grow to; 0: a share of the machine's memory

	Tasks int // about how many tasks the requests will name; 0: they are for the whole machine

	ArrivalBudget time.Duration // wake to last arrival; 0: 10 ms
	MaxPause      time.Duration // bound of the stopped time, summed over tries; 0: 100 ms with interrupts off, else 250 ms; at most 2 s, or half the watchdog's threshold, with interrupts off
	LockWait      time.Duration // for another capture on this machine; 0: 5 s
	ReadLimit     time.Duration // for one read of somebody's /proc file; 0: 500 ms

	Latency string // what is timed: LatencyOff, LatencyTask, LatencyThread; "": LatencyTask

	// Prompt is for a session that waits for its request, and then is to stop the
	// machine at once: the switch hook, which notes what each CPU ran, stays attached.
	// It costs every context switch of the machine some tens of ns until Close.
	Prompt bool

	UserStacks UserStacks // what is taken of user stacks; "": UserStacksAuto
	StackBytes int        // of a user stack, at most; 0: 24 KiB; engine pull may take fewer
	UserFrames int        // of a user stack, at most 1,000; 0: 256
	KeepStacks bool       // chain and bytes of user stacks stay in the file

	Wait string // whether it is recorded what threads wait for: WaitOn, WaitOff; "": WaitOn; engine procfs cannot

	RemoteFiles bool // read executables on FUSE and network file systems too

	// FileReader is the command line of a program that calls ServeFiles at once.
	// Processes of it then open and read executables. If one hangs in a dead file
	// system, this process can still end. nil: threads of this process read them.
	FileReader []string

	Warnings func() []kcdata.Warning // the caller's own, asked for when the end of a file is made; may be nil

	Redact bool // no user stacks, no mappings, no arguments, no register values, addresses relative to _text
}

// Request is one capture of a Session.
type Request struct {
	Pids   []int     // thread groups to record; nil: all
	Since  uint64    // CLOCK_MONOTONIC, ns: only what changed; not 0: ErrDelta
	Trace  bool      // keep the trace of our own events even if all went well
	Output io.Writer // receives the plain KCData, streamed once all of it is collected; nil: nobody

	// NoSettle stops the machine 3 ms sooner. It is for callers who do not care
	// what each CPU ran: the requester's CPU then shows the request itself.
	NoSettle bool
}

// OptionError names an option whose value cannot be used.
type OptionError = engine.OptionError

func badOption(option, value, reason string) error {
	return &OptionError{Option: option, Value: value, Reason: reason}
}

// Errors that callers tell apart.
var (
	ErrDelta  = errors.New("delta captures are not supported")
	ErrClosed = errors.New("session is closed")
	ErrBusy   = errors.New("another capture is under way")
	ErrNoTask = errors.New("no such task")
)

const (
	defaultArrivalBudget = 10 * time.Millisecond
	defaultMaxPause      = 250 * time.Millisecond
	irqoffMaxPause       = 100 * time.Millisecond
	defaultLockWait      = 5 * time.Second
	defaultReadLimit     = 500 * time.Millisecond
	maxArrivalBudget     = 10 * time.Second
)

// withDefaults leaves MaxPause, whose default depends on the isolation, to Open.
func (o Options) withDefaults() (Options, error) {
	o.Engine = cmp.Or(o.Engine, EngineAuto)
	o.Latency = cmp.Or(o.Latency, LatencyTask)
	o.UserStacks = cmp.Or(o.UserStacks, UserStacksAuto)
	o.Wait = cmp.Or(o.Wait, WaitOn)
	o.StackBytes = cmp.Or(o.StackBytes, defaultStackBytes)
	o.UserFrames = cmp.Or(o.UserFrames, defaultUserFrames)
	o.ArrivalBudget = cmp.Or(o.ArrivalBudget, defaultArrivalBudget)
	o.LockWait = cmp.Or(o.LockWait, defaultLockWait)
	o.ReadLimit = cmp.Or(o.ReadLimit, defaultReadLimit)
	o.MaxBuffer = cmp.Or(o.MaxBuffer, engine.MaxBuffer())
	return o, o.check()
}

func (o Options) check() error {
	switch o.Engine {
	case EngineAuto, EngineTrap, EnginePull, EngineProcfs:
	default:
		return badOption("engine", o.Engine, "want auto, trap, pull or procfs")
	}
	if _, ok := latencyLevels[o.Latency]; !ok {
		return badOption("latency", o.Latency, "want off, task or thread")
	}
	if o.Wait != WaitOn && o.Wait != WaitOff {
		return badOption("wait", o.Wait, "want on or off")
	}
	if err := o.checkUser(); err != nil {
		return err
	}
	for _, d := range []struct {
		name  string
		value time.Duration
		most  time.Duration
	}{
		{"arrival-budget", o.ArrivalBudget, maxArrivalBudget},
		{"max-pause", o.MaxPause, time.Minute},
		{"lock-wait", o.LockWait, time.Hour},
		{"read-limit", o.ReadLimit, time.Hour},
	} {
		if d.value < 0 || d.value > d.most {
			return badOption(d.name, d.value.String(), "want more than 0 and at most "+d.most.String())
		}
	}
	if o.Buffer != 0 && o.Buffer < engine.MinBuffer {
		return badOption("buffer", fmt.Sprint(o.Buffer), fmt.Sprintf("below the minimum of %d bytes", engine.MinBuffer))
	}
	if o.Buffer > o.MaxBuffer {
		return badOption("buffer", fmt.Sprint(o.Buffer), fmt.Sprintf("above the maximum of %d bytes", o.MaxBuffer))
	}
	return nil
}
