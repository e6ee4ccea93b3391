package kcdata

import (
	"fmt"
	"slices"
	"strings"
)

// ParseSnapshot decodes a plain (see Unwrap) stackshot.
//
// It skips unknown items and names contradictions in Problems. A missing item leaves its
// field nil or zero. For a file that breaks off it returns what came before the break,
// together with the reader's *FormatError. It returns nil only for bytes that do not begin
// like a stackshot.
func ParseSnapshot(plain []byte) (*Snapshot, error) {
	return ParseSnapshotWithin(plain, Memory(int64(len(plain))))
}

// ParseSnapshotWithin is ParseSnapshot with a budget: the decoded file may take at most
// memory bytes (see Memory). A file that needs more ends there, with ErrTooLarge.
func ParseSnapshotWithin(plain []byte, memory int64) (*Snapshot, error) {
	r, err := NewReader(plain)
	if err != nil {
		return nil, err
	}
	magic := r.Magic()
	if !isStackshot(magic) {
		return nil, badf(0, ErrNotStackshot, "%v", magic)
	}
	p := snapshotParser{
		s:     &Snapshot{Delta: magic == MagicDeltaStackshot},
		tasks: make(map[uint64]bool), threads: make(map[uint64]uint64), kernel: make(map[uint64]struct{}),
		left: memory, memory: memory, models: models(),
	}
	var broken error
	for it, err := range r.Items() {
		if err != nil {
			broken = err
			break
		}
		p.at = it.Offset
		if p.item(it); p.broken != nil {
			break
		}
	}
	p.finish()
	if broken == nil {
		broken = p.broken
	}
	if broken != nil {
		p.s.Partial = true
		p.note("the file breaks off: %v", broken)
	}
	return p.s, broken
}

// maxProblems bounds Problems: a hostile file could have millions of them.
const maxProblems = 100

type snapshotParser struct {
	s       *Snapshot
	models  *modelFields
	depth   int               // containers around the next item
	task    *Task             // the TASK around the next item; nil: none
	thread  *Thread           // the THREAD around the next item; nil: none
	tasks   map[uint64]bool   // ids of all tasks so far
	threads map[uint64]uint64 // ids of all threads so far, each with its task
	dropped int               // number of problems beyond maxProblems
	still   int               // threads of a delta that did not run

	memory, left int64               // the budget, and what is left of it
	at           int                 // offset of the item that is being decoded
	broken       error               // set when the budget is spent
	kernel       map[uint64]struct{} // addresses of kernel stacks
	warnings     int                 // number of warnings beyond maxWarnings

	// Symbols, modules and control groups have offsets into a string table that may come after them.
	symbols []LinuxSymbol
	modules []LinuxModule
	cgroups []LinuxCgroup
	strings []byte

	user userParser // of the open task
}

func (p *snapshotParser) problem(format string, args ...any) {
	if len(p.s.Problems) >= maxProblems {
		p.dropped++
		return
	}
	p.note(format, args...)
}

// note appends to Problems even if there are maxProblems of them already.
func (p *snapshotParser) note(format string, args ...any) {
	p.s.Problems = append(p.s.Problems, fmt.Sprintf(format, args...))
}

// finish decodes what had to wait for the end of the file: the names. If the budget is spent
// it gets an eighth of the memory anew, so that the part that was read has its names.
func (p *snapshotParser) finish() {
	broken := p.broken
	if broken != nil {
		p.broken, p.left = nil, p.memory/8
	}
	p.closeTask() // of a file that breaks off
	p.table()
	if p.s.Delta {
		still := ""
		if p.still > 0 {
			still = fmt.Sprintf(" (%d)", p.still)
		}
		p.s.Problems = slices.Insert(p.s.Problems, 0, "a delta stackshot lacks the threads that did not run since the one before it"+still+", and names of older tasks")
	}
	if broken != nil {
		p.broken = broken
	}
	if p.warnings > 0 {
		p.problem("%d warnings more than the %d that are kept", p.warnings, maxWarnings)
	}
	if p.dropped > 0 {
		p.note("%d more problems", p.dropped)
	}
}

// table decodes the symbols, modules and control groups, whose names are in the string table.
func (p *snapshotParser) table() {
	text := p.stringTable(p.strings)
	n := p.afford(len(p.symbols), "symbols", func(i int) int64 {
		r := &p.symbols[i]
		return textCost * int64(len(text.at(r.Name, maxTableString))+len(text.at(r.Module, maxTableString)))
	})
	p.s.Symbols = NewSymbolTable(p.symbols[:n], text)
	n = p.afford(len(p.modules), "modules", func(i int) int64 {
		return textCost * int64(len(text.at(p.modules[i].Name, maxTableString)))
	})
	for _, m := range p.modules[:n] {
		p.s.Modules = append(p.s.Modules, m.module(text))
	}
	p.cgroupTable(text)
}

// stringTable is a copy of a string table; empty if the budget has no room for it.
func (p *snapshotParser) stringTable(b []byte) stringTable {
	if !p.take(int64(len(b)), "a string table of %d bytes", len(b)) {
		return ""
	}
	return stringTable(b)
}

func (m *LinuxModule) module(text stringTable) Module {
	return Module{Name: text.at(m.Name, maxTableString), Addr: m.Addr, Size: m.Size, BuildID: buildID(&m.BuildID, m.BuildIDLen)}
}

// buildID is the part of a build-id of n bytes that a record holds; nil: none is known.
func buildID(held *[20]byte, n uint32) []byte {
	return append([]byte(nil), held[:min(int(n), len(held))]...)
}

// item decodes one item into the snapshot, task or thread in whose container it stands. It
// skips the items of unknown containers.
func (p *snapshotParser) item(it Item) {
	switch it.Type {
	case TypeContainerBegin:
		p.begin(it.ContainerType(), it.ContainerID())
		return
	case TypeContainerEnd:
		p.end()
		return
	}
	switch {
	case p.depth == 0:
		p.topItem(it)
	case p.depth == 1 && p.task != nil:
		p.taskItem(it)
	case p.depth == 2 && p.thread != nil:
		p.threadItem(it)
	}
}

func (p *snapshotParser) begin(t Type, id uint64) {
	switch {
	case p.depth == 0 && (t == TypeTask || t == TypeTransitioningTask):
		if p.tasks[id] {
			p.problem("task %d is in the file more than once", id)
		}
		p.tasks[id] = true
		if !p.take(taskCost, "task %d", id) {
			return
		}
		p.task = &Task{ID: id, Transitioning: t == TypeTransitioningTask}
		p.user = userParser{places: make(map[uint64]struct{})}
		p.s.Tasks = append(p.s.Tasks, p.task)
	case p.depth == 1 && p.task != nil && t == TypeThread:
		if first, dup := p.threads[id]; dup {
			p.problem("thread %d of task %d is in the file already, in task %d", id, p.task.ID, first)
		} else {
			p.threads[id] = p.task.ID
		}
		if !p.take(threadCost, "thread %d", id) {
			return
		}
		p.thread = &Thread{ID: id}
		p.task.Threads = append(p.task.Threads, p.thread)
	case t == TypeTask || t == TypeTransitioningTask || t == TypeThread:
		p.problem("container %#x id %d stands where no such container may stand", uint32(t), id)
	}
	p.depth++
}

func (p *snapshotParser) end() {
	if p.depth == 0 {
		p.problem("a container ends that never began")
		return
	}
	p.depth--
	if p.depth < 2 {
		p.thread = nil
	}
	if p.depth < 1 {
		p.closeTask()
	}
}

// where names the container around the next item, for the texts of Problems.
func (p *snapshotParser) where() string {
	switch {
	case p.thread != nil:
		return fmt.Sprintf("thread %d of task %d", p.thread.ID, p.task.ID)
	case p.task != nil:
		return fmt.Sprintf("task %d", p.task.ID)
	}
	return "the machine's part"
}

// splitWarning splits "code: text". A code is one word.
func splitWarning(s string) Warning {
	if code, text, ok := strings.Cut(s, ": "); ok && code != "" && !strings.ContainsAny(code, " \t\n") {
		return Warning{Code: code, Text: text}
	}
	return Warning{Text: s}
}

// splitCmdline splits /proc/PID/cmdline into its arguments. Only the last NUL is a
// terminator; the others separate arguments, which may be empty.
func splitCmdline(b []byte) []string {
	s := strings.TrimSuffix(string(b), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}
