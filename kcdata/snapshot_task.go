package kcdata

import (
	"bytes"
	"slices"
)

// userParser keeps the records of one task that wait for its string table, which may come
// after them.
type userParser struct {
	mappings []LinuxMapping
	names    map[int]string // of the mappings from the window, by index
	cmdline  []byte         // from the window
	symbols  []LinuxUserSymbol
	strings  []byte
	places   map[uint64]struct{} // addresses in the task's user stacks
	reasons  int                 // number of reasons for EnrichFailed beyond maxNotRead
}

// closeTask ends the open task, if there is one.
func (p *snapshotParser) closeTask() {
	if p.task == nil {
		return
	}
	p.thread = nil
	text := p.stringTable(p.user.strings)
	p.closeMappings(text)
	if p.task.Cmdline == nil { // /proc gave none; it would give the whole one
		p.task.Cmdline = p.cmdline(p.user.cmdline)
	}
	p.closeSymbols(text)
	if p.user.reasons > 0 {
		p.problem("task %d: %d reasons why something was not read, more than the %d that are kept", p.task.ID, p.user.reasons, maxNotRead)
	}
	p.task = nil
}

func (p *snapshotParser) closeMappings(text stringTable) {
	all := p.user.mappings
	n := p.afford(len(all), "mappings", func(i int) int64 {
		return textCost * int64(max(len(text.at(all[i].Path, maxUserString)), len(p.user.names[i])))
	})
	outside := slices.ContainsFunc(p.user.mappings, func(m LinuxMapping) bool { return m.Flags&MappingInWindow == 0 })
	for i, m := range all[:n] {
		if outside && m.Flags&MappingInWindow != 0 {
			continue // /proc gave mappings, too, with whole paths
		}
		out := m.mapping(text)
		if name := p.user.names[i]; name != "" {
			out.Path = name
		}
		p.task.Mappings = append(p.task.Mappings, out)
	}
}

func (p *snapshotParser) closeSymbols(text stringTable) {
	all := p.user.symbols
	if len(all) == 0 {
		return
	}
	n := p.afford(len(all), "symbols", func(i int) int64 {
		r := &all[i]
		return textCost * int64(len(text.at(r.Name, maxUserString))+len(text.at(r.Module, maxUserString))+len(text.at(r.File, maxUserString)))
	})
	t := NewUserSymbolTable(all[:n], text)
	if t.dropped > 0 {
		p.problem("task %d: %d functions more than the %d that are kept of one address", p.task.ID, t.dropped, maxInlined)
	}
	if t.most < 2 || p.inlined(t) {
		p.task.UserSymbols = t
	}
}

// inlined charges the inlined functions that t adds to the task's stacks as frames of their
// own. It is false if the budget has no room for them.
func (p *snapshotParser) inlined(t *UserSymbolTable) bool {
	more := int64(0)
	for _, th := range p.task.Threads {
		for i := range th.User {
			more += int64(max(len(t.Functions(th.UserPlace(i))), 1) - 1)
		}
	}
	if p.take(frameCost*more, "task %d: %d inlined frames", p.task.ID, more) {
		return true
	}
	p.problem("task %d: its user stacks have no names: %d inlined frames", p.task.ID, more)
	return false
}

func (m *LinuxMapping) mapping(text stringTable) Mapping {
	return Mapping{LinuxMapping: *m, Path: text.at(m.Path, maxUserString), BuildID: buildID(&m.BuildID, m.BuildIDLen)}
}

// mapName keeps the path of the mapping that stands before it.
func (p *snapshotParser) mapName(it Item) {
	i := len(p.user.mappings) - 1
	if i < 0 {
		p.problem("item %#x in %s: there is no mapping before it", uint32(it.Of()), p.where())
		return
	}
	if p.user.names == nil {
		p.user.names = make(map[int]string)
	}
	p.user.names[i] = p.text(it, maxUserString)
}

// userBytes decodes pieces of a stack.
func (p *snapshotParser) userBytes(it Item) {
	left := len(it.Data)
	for u, behind := range it.UserBytes() {
		if !p.take(pieceCost+int64(len(u.Data)), "a piece of a stack, %d bytes,", len(u.Data)) {
			return
		}
		left = behind
		u.Data = bytes.Clone(u.Data)
		p.thread.UserBytes = append(p.thread.UserBytes, u)
	}
	if left != 0 {
		p.problem("item %#x in %s: %d of %d bytes are no pieces of a stack", uint32(it.Of()), p.where(), left, len(it.Data))
	}
}
