package kcdata

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// ParseSnapshot decodes a plain (see Unwrap) stackshot.
//
// Items it does not know are skipped, items that are missing leave their
// fields nil or zero, and contradictions are named in Problems. A file that
// breaks off returns what came before the break together with the reader's
// *FormatError; only bytes that do not begin as a stackshot return nil.
func ParseSnapshot(plain []byte) (*Snapshot, error) {
	r, err := NewReader(plain)
	if err != nil {
		return nil, err
	}
	magic := r.Magic()
	if magic != MagicStackshot && magic != MagicDeltaStackshot {
		return nil, &FormatError{Offset: 0, What: fmt.Sprintf("magic %#x is not a stackshot's", uint32(magic)), Err: ErrBadMagic}
	}
	p := snapshotParser{
		s:     &Snapshot{Delta: magic == MagicDeltaStackshot},
		tasks: make(map[uint64]bool), threads: make(map[uint64]uint64),
	}
	for it, err := range r.Items() {
		if err != nil {
			p.finish()
			p.problem("the file breaks off: %v", err)
			return p.s, err
		}
		p.item(it)
	}
	p.finish()
	return p.s, nil
}

// maxProblems bounds Problems: a hostile file is one problem, not a million.
const maxProblems = 100

type snapshotParser struct {
	s       *Snapshot
	open    []Type            // containers around the next item
	ids     []uint64          // their ids
	task    *Task             // the TASK around it, nil: none
	thread  *Thread           // the THREAD around it, nil: none
	tasks   map[uint64]bool   // task ids seen
	threads map[uint64]uint64 // thread ids seen, to their task
	dropped int               // problems beyond maxProblems

	// Symbols and modules point into a string table that may come later.
	symbols []LinuxSymbol
	modules []LinuxModule
	strings []byte

	user userParser // of the open task
}

func (p *snapshotParser) problem(format string, args ...any) {
	if len(p.s.Problems) >= maxProblems {
		p.dropped++
		return
	}
	p.s.Problems = append(p.s.Problems, fmt.Sprintf(format, args...))
}

func (p *snapshotParser) finish() {
	p.closeTask() // of a file that breaks off
	p.s.Symbols = NewSymbolTable(p.symbols, p.strings)
	text := stringTable(p.strings)
	for _, m := range p.modules {
		p.s.Modules = append(p.s.Modules, m.module(text))
	}
	if p.dropped > 0 {
		p.s.Problems = append(p.s.Problems, fmt.Sprintf("%d more problems", p.dropped))
	}
}

func (m *LinuxModule) module(text stringTable) Module {
	out := Module{Name: text.at(m.Name, maxTableString), Addr: m.Addr, Size: m.Size}
	if n := min(int(m.BuildIDLen), len(m.BuildID)); n > 0 {
		out.BuildID = append([]byte(nil), m.BuildID[:n]...)
	}
	return out
}

// item files one item under the container it stands in. Containers nobody
// here knows keep their items to themselves.
func (p *snapshotParser) item(it Item) {
	switch it.Type {
	case TypeContainerBegin:
		p.begin(it.ContainerType(), it.ContainerID())
		return
	case TypeContainerEnd:
		p.end()
		return
	}
	depth := len(p.open)
	switch {
	case depth == 0:
		p.topItem(it)
	case depth == 1 && p.task != nil:
		p.taskItem(it)
	case depth == 2 && p.thread != nil:
		p.threadItem(it)
	}
}

func (p *snapshotParser) begin(t Type, id uint64) {
	switch {
	case len(p.open) == 0 && (t == TypeTask || t == TypeTransitioningTask):
		if p.tasks[id] {
			p.problem("task %d is in the file more than once", id)
		}
		p.tasks[id] = true
		p.task = &Task{ID: id, Transitioning: t == TypeTransitioningTask}
		p.user = userParser{}
		p.s.Tasks = append(p.s.Tasks, p.task)
	case len(p.open) == 1 && p.task != nil && t == TypeThread:
		if first, dup := p.threads[id]; dup {
			p.problem("thread %d of task %d is in the file already, in task %d", id, p.task.ID, first)
		} else {
			p.threads[id] = p.task.ID
		}
		p.thread = &Thread{ID: id}
		p.task.Threads = append(p.task.Threads, p.thread)
	case t == TypeTask || t == TypeTransitioningTask || t == TypeThread:
		p.problem("container %#x id %d stands where none of its kind may", uint32(t), id)
	}
	p.open = append(p.open, t)
	p.ids = append(p.ids, id)
}

func (p *snapshotParser) end() {
	if len(p.open) == 0 {
		p.problem("a container ends that never began")
		return
	}
	p.open = p.open[:len(p.open)-1]
	p.ids = p.ids[:len(p.ids)-1]
	if len(p.open) < 2 {
		p.thread = nil
	}
	if len(p.open) < 1 {
		p.closeTask()
	}
}

// where names the container around the next item, for Problems.
func (p *snapshotParser) where() string {
	switch {
	case p.thread != nil:
		return fmt.Sprintf("thread %d of task %d", p.thread.ID, p.task.ID)
	case p.task != nil:
		return fmt.Sprintf("task %d", p.task.ID)
	}
	return "the machine's part"
}

// record decodes a struct item into v and reports whether it could.
func (p *snapshotParser) record(it Item, v any) bool {
	if err := Unmarshal(it.Data, v); err != nil {
		p.problem("item %#x in %s: %v", uint32(it.Type), p.where(), err)
		return false
	}
	return true
}

// optional decodes a struct item for a field that is nil where it is absent.
func optional[T any](p *snapshotParser, it Item, dst **T) {
	v := new(T)
	if p.record(it, v) {
		*dst = v
	}
}

// minElem is the shortest array element that is decoded. It bounds what a
// small array of tiny elements can grow to in memory; no version of any
// record is shorter.
const minElem = 4

// array appends an array's elements to dst.
func array[T any](p *snapshotParser, it Item, dst *[]T) {
	elem, size, count := it.Elem()
	if count > 0 && size < minElem {
		p.problem("array of %#x in %s: elements of %d bytes", uint32(elem), p.where(), size)
		return
	}
	for i := range count {
		var v T
		if err := Unmarshal(it.Data[i*size:(i+1)*size], &v); err != nil {
			p.problem("array of %#x in %s, element %d: %v", uint32(elem), p.where(), i, err)
			return
		}
		*dst = append(*dst, v)
	}
}

func arrayElem(it Item) Type {
	t, _, _ := it.Elem()
	return t
}

// maxStack is how many frames of one stack are kept; ours have 1,000 at most. Each
// frame may have a name of 4 KiB, which reports repeat.
const maxStack = 4096

// addresses appends an array of u64.
func (p *snapshotParser) addresses(it Item, dst *[]uint64) {
	elem, size, count := it.Elem()
	if count > 0 && size != 8 {
		p.problem("array of %#x in %s: elements of %d bytes are not addresses", uint32(elem), p.where(), size)
		return
	}
	if room := max(maxStack-len(*dst), 0); count > room {
		p.problem("array of %#x in %s: %d addresses more than the %d that are kept", uint32(elem), p.where(), count-room, maxStack)
		count = room
	}
	for i := range count {
		*dst = append(*dst, binary.LittleEndian.Uint64(it.Data[8*i:]))
	}
}

// texts takes NUL-terminated texts apart: an item holds one, but a decoder that joins
// the arrays of one type gives several.
func texts(b []byte) []string {
	return strings.Split(string(bytes.TrimSuffix(b, []byte{0})), "\x00")
}

// splitWarning takes "code: text" apart; a code is one word.
func splitWarning(s string) Warning {
	if code, text, ok := strings.Cut(s, ": "); ok && code != "" && !strings.ContainsAny(code, " \t\n") {
		return Warning{Code: code, Text: text}
	}
	return Warning{Text: s}
}

// splitCmdline takes /proc/PID/cmdline apart. Only the last NUL is a
// terminator: empty arguments in between are arguments.
func splitCmdline(b []byte) []string {
	s := strings.TrimSuffix(string(b), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}
