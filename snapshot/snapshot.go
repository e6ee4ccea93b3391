package snapshot

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"stackshot/internal/capture"
	"stackshot/internal/clock"
	"stackshot/internal/collate"
	"stackshot/internal/ends"
	"stackshot/internal/engine"
	"stackshot/internal/engine/pull"
	"stackshot/internal/engine/sample"
	"stackshot/internal/engine/stop"
	"stackshot/internal/foreign"
	"stackshot/internal/host"
	"stackshot/internal/image"
	"stackshot/internal/procfs"
	"stackshot/internal/timens"
	"stackshot/internal/topology"
	"stackshot/kcdata"
)

// Session holds what a capture needs and what takes time or may fail: loaded programs,
// parked workers, and the description of the machine. Open it once, and Take as often as
// wanted. One Take runs at a time; a second one waits.
type Session struct {
	options  Options
	plan     *topology.Plan
	team     *stop.Team // of the engines that stop the machine; nil: there is none
	engine   engine.Engine
	lesser   *pull.Engine    // over the same team; nil until engine trap could not stop the machine
	noLesser error           // the kernel refuses that one
	fallback engine.Engine   // procfs: nil until nothing could
	sampler  *sample.Sampler // nil: CPUs that are not stopped tell nothing
	ends     *ends.Looker    // nil: nobody looks for the other ends of files
	proc     procfs.FS       // with time limits: files that belong to somebody
	machine  procfs.FS       // without: files of the kernel alone, which wait for nobody
	files    *foreign.Files  // other people's executables and perf maps
	images   *image.Cache    // what was made of them, across captures
	host     *host.Host
	warnings []kcdata.Warning // of Open; constant after
	absent   string           // of Open; constant after: why /proc does not have a task
	thrift   thrift           // of Open; constant after
	hooks    engine.Hooks
	resident toldResident // by mu

	throttles    *topology.ThrottleReader
	throttlesWhy error // by mu; of the last Take: why throttles did not answer

	mu     sync.Mutex
	closed bool  // by mu
	last   scope // by mu; tasks of the last census, threads before it; 0: none yet
}

// Open prepares captures. Errors: *OptionError and those of topology for options that
// cannot be used; internal/bpf.ErrUnsupported with engine trap or pull; ErrNoRoom;
// ErrNoProc.
func Open(o Options) (*Session, error) { return open(o, engine.Hooks{}) }

func open(o Options, h engine.Hooks) (*Session, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Session{options: o, hooks: h}
	if err = s.checkProc(); err != nil {
		return nil, err
	}
	if s.plan, err = planCPUs(o); err != nil {
		return nil, err
	}
	if err = errors.Join(s.beThrifty(), s.fitMemory()); err != nil {
		return nil, err
	}
	s.proc = procfs.FS{Readers: procfs.NewReaders(s.thrift.readers, o.ReadLimit)}
	s.files = foreign.New(foreign.Options{Limit: o.ReadLimit, Remote: o.RemoteFiles, Command: o.FileReader, Refuse: s.thrift.refuse()})
	s.images = image.New(s.files, min(image.DefaultMaxCost, memoryLeft(&h).Free/8))
	s.throttles = newThrottleReader(h)
	s.host = host.Describe(s.machine, o.Redact)
	if err = s.chooseEngine(); err != nil {
		return nil, err
	}
	can := s.engine.Caps()
	s.options.MaxPause = cmp.Or(s.options.MaxPause, pauseFor(can.Isolation))
	s.boundPause(can.Isolation)
	if !can.UserStacks {
		s.options.UserStacks = UserStacksOff
	}
	if timens.Err != nil {
		s.warn("clocks_unknown", "times may be those of a time namespace: "+timens.Err.Error())
	}
	s.startSampler(can.Objects)
	s.openEnds(openEndPass)
	if s.host.KallsymsWhy != "" {
		s.warn("no_symbols", "kernel addresses stay numbers: "+s.host.KallsymsWhy)
	}
	if s.host.PidNS != 0 && !s.host.FirstNS {
		s.warn("this_namespace_only", "tasks outside this pid namespace are not in the file")
	}
	return s, nil
}

// Take makes one capture. The result is whole, or says what is missing. With an error
// there is no result.
func (s *Session) Take(ctx context.Context, r Request) (*Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if r.Since != 0 {
		return nil, ErrDelta
	}
	began, asked, caller := time.Now(), clock.Nanotime(), stop.CurrentCPU()
	scope, err := s.scope(r)
	if err != nil {
		return nil, err
	}
	scope.noSettle = r.NoSettle
	if err := s.replan(); err != nil {
		return nil, err
	}
	s.hooks.Reach(engine.StageScope)
	defer s.engine.Release()
	c, err := s.tries(ctx, scope)
	if err != nil {
		return nil, err
	}
	s.lookForEnds(c)
	s.remember(scope, c)
	c.Capture.MaxPauseNs = uint64(s.options.MaxPause)
	c.Capture.ElapsedNs = uint64(time.Since(began))
	c.KeepTrace = r.Trace
	c.Latency.CallingCPU = int32(caller)
	if c.Capture.StopNs != 0 {
		c.Latency.SetupMt = uint64(max(int64(c.Capture.StopNs)-asked, 0))
	}
	if h := s.hooks.Released; h != nil {
		h()
	}
	s.complete(c, scope)
	defer s.files.EndIdle() // the next capture is to find no process of ours
	return s.collate(r.Output, c)
}

// complete adds to a capture what only the session knows, and the machine's load right
// after the release.
func (s *Session) complete(c *capture.Raw, sc scope) {
	o := &s.options
	c.At, c.Request = clock.MomentOf(c.Capture.StopNs), sc.words
	c.Wants = capture.Wants{
		Redact: o.Redact, Timed: o.Latency != LatencyOff, UserFrames: o.UserFrames, KeepStacks: o.KeepStacks,
		UserStacks: map[UserStacks]capture.UserStacks{UserStacksFP: capture.ChainStacks, UserStacksAuto: capture.WholeStacks}[o.UserStacks],
	}
	c.State.Loadavg, _ = s.machine.Loadavg()
	c.State.Meminfo, _ = s.machine.Meminfo()
	c.State.Pressure, _ = s.machine.Pressure()
	c.Warnings = append(slices.Clone(s.warnings), c.Warnings...)
	s.stateWarnings(c)
	defer s.lookAtCgroups(c) // of all tasks, those that reconcile found among them
	if sc.pids == nil {
		s.reconcile(c)
		return
	}
	c.Asked = []uint32{}
	for _, p := range sc.pids {
		c.Asked = append(c.Asked, p.Tgid)
	}
	s.reconcileAsked(c)
}

// collate writes the file of a capture that is complete.
func (s *Session) collate(out io.Writer, c *capture.Raw) (*Result, error) {
	sum, err := s.collating().Write(out, c)
	if err != nil {
		return nil, err
	}
	return newResult(c, sum), nil
}

func (s *Session) collating() *collate.Collator {
	return &collate.Collator{
		Host: s.host, Proc: s.proc, Images: s.images, Files: s.files, Absent: s.absent, Version: Version(),
		KeepUserSide: s.hooks.KeepUserSide, LateThreads: s.hooks.LateThreads, Warnings: s.options.Warnings,
	}
}

// ServeFiles is all that a program of Options.FileReader does: it reads files for the
// process that started it. Requests and answers go through standard input and output.
// ServeFiles returns when that process needs it no more.
func ServeFiles() error { return foreign.Serve(os.Stdin, os.Stdout) }

// Close ends the session's threads and gives its memory back.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.proc.Readers.Close()
	s.files.Close()
	s.throttles.Close()
	var err error
	if s.sampler != nil {
		err = s.sampler.Close()
	}
	if s.ends != nil {
		err = errors.Join(err, s.ends.Close())
	}
	err = errors.Join(err, s.resident.leave(), s.engine.Close())
	if s.lesser != nil {
		err = errors.Join(err, s.lesser.Close())
	}
	if s.fallback != nil {
		err = errors.Join(err, s.fallback.Close())
	}
	return errors.Join(err, s.closeTeam())
}

// Take is Open, one Take and Close.
func Take(ctx context.Context, o Options, r Request) (*Result, error) {
	s, err := Open(o)
	if err != nil {
		return nil, err
	}
	res, err := s.Take(ctx, r)
	return res, errors.Join(err, s.Close())
}

func (s *Session) warn(code, text string) {
	s.warnings = append(s.warnings, kcdata.Warning{Code: code, Text: strings.ReplaceAll(text, "\n", "; ")}) // of errors.Join
}
