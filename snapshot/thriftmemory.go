package snapshot

import (
	"fmt"

	"stackshot/internal/engine"
	"stackshot/internal/limits"
)

// How much memory a capture takes at most, in bytes. It was measured on 6.18 in control
// groups, as the sum of this process, its helpers and what the kernel has for them,
// with 4,500 and 20,000 threads (docs/performance.md); the numbers add a margin. The
// smallest amount is mostly the kernel's, for the verification of the programs.
const (
	memoryTrapBytes = 180 << 20 // the programs with all of user stacks
	memoryTrapChain = 170 << 20 // with chains alone
	memoryTrapOff   = 135 << 20
	memoryProcfs    = 48 << 20
	memoryFiles     = 40 << 20 // processes that read files, and unwind tables

	// Times the estimated records. Bytes of user stacks can be four times the
	// estimate: then there are three tries, each with a buffer of its own.
	memoryTimesBytes, memoryTimes = 7.0, 2.5

	// What the kernel keeps for each directory of /proc that was read. It frees this
	// under memory pressure, but too late for us.
	memoryProcDir = 8 << 10

	// To try again with a larger buffer: the programs once more, and the buffer
	// with what is made of it.
	memoryAgain, memoryTimesAgain = 64 << 20, 1.5
)

// memoryStep is one way to capture, from the one that records most to the one that
// takes least.
type memoryStep struct {
	user   UserStacks // at most
	files  bool       // of programs are read
	engine bool       // BPF programs
	loses  string     // what the file lacks
}

var memorySteps = []memoryStep{
	{UserStacksAuto, true, true, ""},
	{UserStacksFP, false, true, "of user stacks only frame-pointer chains are recorded, and no program files are read"},
	{UserStacksOff, false, true, "no user stacks are recorded, and no program files are read"},
	{UserStacksOff, false, false, "nothing is stopped, no user stacks are recorded, and no program files are read"},
}

// takes is how much memory a step takes for that many tasks and threads.
func (m memoryStep) takes(o Options, tasks, threads int) int64 {
	if userModes[m.user] < userModes[o.UserStacks] {
		o.UserStacks = m.user
	}
	base, times, dirs := int64(memoryProcfs), memoryTimes, tasks
	switch user := o.userEstimate(); {
	case !m.engine || o.Engine == EngineProcfs:
		o.UserStacks, dirs = UserStacksOff, tasks+threads
	case user == 0:
		base = memoryTrapOff
	case user <= chainEstimate:
		base = memoryTrapChain
	default:
		base, times = memoryTrapBytes, memoryTimesBytes
	}
	if m.files && !o.Redact {
		base += memoryFiles
	}
	records := float64(engine.Estimate(tasks, threads, o.userEstimate(), 1, 1, false).Bytes)
	if o.Buffer != 0 {
		records = float64(o.Buffer)
	}
	return base + int64(times*records) + int64(dirs)*memoryProcDir
}

// memoryStepOf is the first step that fits what is left. An error (err): not even the
// last of those that the options allow.
func memoryStepOf(o Options, tasks, threads int, left limits.Room) (step memoryStep, why, err error) {
	for _, m := range memorySteps {
		if !m.engine && o.Engine != EngineAuto && o.Engine != EngineProcfs {
			break
		}
		need := m.takes(o, tasks, threads)
		if left.Free >= need {
			return m, why, nil
		}
		err = fmt.Errorf("%d MiB of memory are left, and %d threads take about %d MiB: %v", left.Free>>20, threads, need>>20, left)
		if why == nil {
			why = err
		}
	}
	return memoryStep{}, nil, fmt.Errorf("%w: %w", ErrNoRoom, err)
}

// fitMemory measures the memory that is left, decides what to leave out, and warns.
func (s *Session) fitMemory() error {
	sc, err := s.wholeMachine()
	if err != nil {
		return err
	}
	if n := s.options.Tasks; n > 0 && n < sc.tasks {
		sc.tasks, sc.threads = n, max(sc.threads*n/sc.tasks, n)
	}
	step, why, err := memoryStepOf(s.options, sc.tasks, sc.threads, memoryLeft(&s.hooks))
	if err != nil {
		return err
	}
	if why == nil {
		return nil
	}
	if userModes[step.user] < userModes[s.options.UserStacks] {
		s.options.UserStacks = step.user
	}
	if !step.files {
		s.thrift.files = why
	}
	if !step.engine {
		s.thrift.engine = why
	}
	s.warn("little_memory", step.loses+": "+why.Error())
	return nil
}

// noRoomFor says why there can be no buffer of that many bytes; nil: there can.
func (s *Session) noRoomFor(bytes int64) error {
	left := memoryLeft(&s.hooks)
	if need := memoryAgain + int64(memoryTimesAgain*float64(bytes)); left.Free < need {
		return fmt.Errorf("%d MiB of memory are left, and a buffer of %d MiB takes about %d MiB: %v", left.Free>>20, bytes>>20, need>>20, left)
	}
	return nil
}

func memoryLeft(h *engine.Hooks) limits.Room {
	if h.LittleMemory != nil {
		return *h.LittleMemory
	}
	return limits.Machine{}.Memory()
}
