package waitgraph

import (
	"cmp"
	"slices"
	"time"

	"stackshot/internal/model"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// node is a thread of the graph, a process that owns something as a whole, or an owner that is
// no thread of the file or has died.
type node struct {
	owner   waits.Owner // who it is, without a Relation
	wait    *waits.Wait // nil: it waits for nothing that is known
	state   model.State // zero if owner.Thread is nil
	threads []int32     // of a process: its threads that can act, in order
}

// graph has the threads that wait first, then the processes, then the other owners, each in
// order.
type graph struct {
	nodes      []node
	waiting    int32                    // how many wait
	blockers   int32                    // how many wait or are processes
	edges      []edge                   // to the owners of each wait
	from       []int                    // where in edges those of a waiting node begin
	at         map[*kcdata.Thread]int32 // living threads of the file
	processes  map[*kcdata.Task]int32
	absent     map[absentee]int32
	atFiles    bool // a wait is at a file, or for a process
	missedCPUs []*kcdata.LinuxCPU
	minWait    time.Duration

	quiets map[*kcdata.Task]bool // owing.go
	moving map[int32]bool        // of processes
	work   []bool                // of each node (working); nil: not asked yet

	lines  [][]int32 // who wait for each lock
	queues [][]int32 // those of lines that make convoys (convoy.go)
	queued []bool    // of each thread that waits: it is in one of queues
	turn   []bool    // of each thread that waits: for its turn in a pool (turns.go)
	pools  []*Convoy
	loops  map[any]*loops     // by thread or task (loops.go)
	names  map[string]meaning // of functions
}

// edge leads to an owner.
type edge struct {
	node int32
	via  int32 // which of the wait's owners it is
}

// absentee is what an owner without a living thread is known by. Without a number, two owners
// are the same if they left the same resource.
type absentee struct {
	pid, tid uint32
	dead     bool
	resource waits.Resource
}

func absenteeOf(w *waits.Wait, o waits.Owner) absentee {
	a := absentee{pid: o.Pid, tid: o.Tid, dead: o.Dead}
	if o.Tid == 0 {
		a.resource = w.Resource
	}
	return a
}

// isAbsent reports whether o cannot be a thread or a process that goes on: it died, or the file
// lacks it.
func isAbsent(o waits.Owner) bool { return o.Dead || o.Thread == nil && !isProcess(o) }

func newGraph(w *waits.Waits, minWait time.Duration) *graph {
	g := &graph{at: make(map[*kcdata.Thread]int32, len(w.All)), absent: map[absentee]int32{}, processes: map[*kcdata.Task]int32{}, minWait: minWait}
	g.quiets, g.moving, g.loops = map[*kcdata.Task]bool{}, map[int32]bool{}, map[any]*loops{}
	g.names = map[string]meaning{}
	for i := range w.CPUs {
		if w.CPUs[i].Flags&kcdata.CPUMissed != 0 {
			g.missedCPUs = append(g.missedCPUs, &w.CPUs[i])
		}
	}
	for _, w := range w.All {
		if w == nil || w.Thread == nil || w.Task == nil || w.Thread.IsSelf() {
			continue
		}
		if _, twice := g.at[w.Thread]; !twice {
			g.at[w.Thread] = 0
			g.nodes = append(g.nodes, node{owner: ownerOf(w.Task, w.Thread), wait: w, state: w.State})
		}
	}
	g.waiting = int32(len(g.nodes))
	for i := range g.waiting {
		g.addOwners(g.nodes[i].wait)
	}
	g.addThreads()
	slices.SortStableFunc(g.nodes[:g.waiting], byThread)
	slices.SortStableFunc(g.nodes[g.waiting:], byThread)
	g.blockers = g.waiting + int32(len(g.processes))
	for i, n := range g.nodes {
		switch {
		case isProcess(n.owner):
			g.processes[n.owner.Task] = int32(i)
		case !isAbsent(n.owner):
			g.at[n.owner.Thread] = int32(i)
		default:
			g.absent[absenteeOf(n.wait, n.owner)] = int32(i)
			g.nodes[i].wait = nil
		}
	}
	g.findThreads()
	g.addEdges()
	g.findLines()
	g.findTurns()
	return g
}

func ownerOf(task *kcdata.Task, th *kcdata.Thread) waits.Owner {
	return waits.Owner{Task: task, Thread: th, Tid: uint32(th.ID), Pid: uint32(task.ID)}
}

// addOwners adds the owners of w that are not there yet. Until it is sorted, an absent owner
// keeps w, by whose resource it may be known.
func (g *graph) addOwners(w *waits.Wait) {
	for _, o := range w.Owners {
		o.Relation, o.Owes = "", false
		if isProcess(o) {
			if _, there := g.processes[o.Task]; !there {
				g.processes[o.Task] = 0
				g.nodes = append(g.nodes, node{owner: processOf(o.Task)})
			}
			continue
		}
		o.Whole = false
		if isAbsent(o) {
			key := absenteeOf(w, o)
			if _, there := g.absent[key]; !there {
				g.absent[key] = 0
				g.nodes = append(g.nodes, node{owner: o, wait: w})
			}
		} else if _, there := g.at[o.Thread]; !there {
			g.at[o.Thread] = 0
			g.nodes = append(g.nodes, node{owner: o, state: model.StateOf(o.Thread)})
		}
	}
}

// byThread is the order of threads: (tgid, tid), then what tells absentees apart. Processes
// are before all threads that do not wait.
func byThread(a, b node) int {
	c := cmp.Or(
		compareBool(!isProcess(a.owner), !isProcess(b.owner)),
		cmp.Compare(a.owner.Pid, b.owner.Pid), cmp.Compare(a.number(), b.number()),
		compareBool(isAbsent(a.owner), isAbsent(b.owner)), compareBool(a.owner.Dead, b.owner.Dead),
	)
	if c != 0 || !isAbsent(a.owner) {
		return c
	}
	return compareResources(absenteeOf(a.wait, a.owner).resource, absenteeOf(b.wait, b.owner).resource)
}

// number is the tid; a CPU's idle thread has one above all others.
func (n *node) number() uint64 {
	if n.owner.Thread != nil {
		return n.owner.Thread.ID
	}
	return uint64(n.owner.Tid)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func compareResources(a, b waits.Resource) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Task, b.Task), cmp.Compare(a.ID, b.ID))
}

// old reports whether w has lasted MinWait for all that is known, and was read in a stop.
func (g *graph) old(w *waits.Wait) bool {
	return w.Age.Known && w.Age.Ns >= uint64(g.minWait) && w.When != waits.NotAtOne
}
