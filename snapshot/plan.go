package snapshot

import (
	"errors"
	"fmt"
	"slices"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/engine/stop"
	"stackshot/internal/procfs"
	"stackshot/internal/topology"
)

// planCPUs decides which CPUs are stopped, which record, and which is main.
func planCPUs(o Options) (*topology.Plan, error) {
	t, err := topology.Machine()
	if err != nil {
		return nil, err
	}
	allowed, err := topology.Allowed()
	if err != nil {
		return nil, err
	}
	return t.Plan(topology.Options{
		Cpus: o.CPUs, CPUClass: o.CPUClass, StopIsolated: o.StopIsolated,
		Allowed: allowed, Initiator: stop.CurrentCPU(),
	})
}

// scope says which tasks a request asks for, how many, and how the machine is stopped.
type scope struct {
	pids     []bpf.CensusEntry // ascending; nil: all
	tasks    int
	threads  int
	words    string
	noSettle bool
}

// scope resolves a request. A --pid may name any thread of a task.
func (s *Session) scope(r Request) (scope, error) {
	if r.Pids == nil {
		return s.wholeMachine()
	}
	sc := scope{pids: []bpf.CensusEntry{}}
	for _, pid := range r.Pids {
		e, err := s.findTask(pid)
		if err != nil {
			return scope{}, err
		}
		sc.words += fmt.Sprintf(" --pid %d", pid)
		if !slices.ContainsFunc(sc.pids, func(o bpf.CensusEntry) bool { return o.Tgid == e.Tgid }) {
			sc.pids = append(sc.pids, e)
			sc.threads += int(e.Threads)
		}
	}
	slices.SortFunc(sc.pids, func(a, b bpf.CensusEntry) int { return int(a.Tgid) - int(b.Tgid) })
	sc.tasks = len(sc.pids)
	sc.words = sc.words[1:]
	return sc, nil
}

func (s *Session) findTask(pid int) (bpf.CensusEntry, error) {
	if pid <= 0 {
		return bpf.CensusEntry{}, badOption("pid", fmt.Sprint(pid), "want a positive number")
	}
	st, err := s.proc.Status(pid)
	if errors.Is(err, procfs.ErrTimeout) || errors.Is(err, procfs.ErrExhausted) {
		// /proc hangs for this task: so it exists, and is what we are looking for.
		return bpf.CensusEntry{Tgid: uint32(pid), Threads: 1}, nil
	}
	if err != nil {
		return bpf.CensusEntry{}, fmt.Errorf("--pid %d: %w: %w", pid, ErrNoTask, err)
	}
	return bpf.CensusEntry{Tgid: uint32(st.Tgid), Threads: uint32(max(st.Threads, 1))}, nil
}

// wholeMachine counts what there is now: threads by loadavg, tasks by the last census
// and what has been added since (the first time by /proc). Both only size the memory;
// if the census finds more, another try follows.
func (s *Session) wholeMachine() (scope, error) {
	all := s.allThreads()
	if s.last.tasks > 0 && all > 0 {
		return scope{tasks: s.last.tasks + max(all-s.last.threads, 0), threads: all}, nil
	}
	tgids, err := s.machine.Tasks()
	if err != nil {
		return scope{}, fmt.Errorf("list tasks: %w", err)
	}
	sc := scope{tasks: len(tgids) + 1, threads: 4 * len(tgids)}
	if all > 0 {
		sc.threads = max(all, len(tgids))
	}
	return sc, nil
}

// allThreads is the denominator in the fourth field of loadavg, which counts
// every task_struct; 0: not known.
func (s *Session) allThreads() int {
	var a, b, c string
	var running, all int
	text, err := s.machine.Loadavg()
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscanf(text, "%s %s %s %d/%d", &a, &b, &c, &running, &all); err != nil {
		return 0
	}
	return all
}

// remember keeps what a census of the whole machine found, for the next.
func (s *Session) remember(sc scope, c *capture.Raw) {
	if sc.pids == nil && c.WholeCensus && c.SeenTasks > 0 {
		s.last.tasks, s.last.threads = c.SeenTasks, sc.threads
	}
}
