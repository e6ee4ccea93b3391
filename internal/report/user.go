package report

import (
	"fmt"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// userFrame is one function of a user stack. An address in functions that were inlined
// into each other has several userFrames, the innermost first.
type userFrame struct {
	kcdata.UserFunction
	addr    uint64
	mapping *kcdata.Mapping // that the address is in; nil: in none of the file's
	inlined bool            // into the next frame
	id      uint32          // equal for frames of the same identity, in all tasks
}

// place is an address in the user space of a task.
type place struct {
	task *kcdata.Task
	kcdata.UserPlace
}

// userStack returns a thread's user frames, leaf first, at most maxUserFrames. The frames of
// one place are made once.
func (v *view) userStack(task *kcdata.Task, t *kcdata.Thread) []*userFrame {
	if len(t.User) == 0 {
		return nil
	}
	out := make([]*userFrame, 0, len(t.User))
	for i := range t.User {
		fs := v.framesAt(place{task, t.UserPlace(i)})
		out = append(out, fs[:min(len(fs), maxUserFrames-len(out))]...)
	}
	return out
}

func (v *view) framesAt(p place) []*userFrame {
	return once(v.places, p, func() []*userFrame { return v.newFrames(p) })
}

func (v *view) newFrames(p place) []*userFrame {
	mapping := model.MappingOf(p.task, p.UserPlace)
	funcs := p.task.UserSymbols.Functions(p.UserPlace)
	if len(funcs) == 0 {
		funcs = make([]kcdata.UserFunction, 1)
	}
	fs := make([]*userFrame, len(funcs))
	for i, f := range funcs {
		fs[i] = &userFrame{UserFunction: f, addr: p.Addr, mapping: mapping, inlined: i < len(funcs)-1}
		fs[i].id = v.intern(fs[i].identity())
	}
	return fs
}

// intern gives each identity a number: stacks are compared by these numbers.
func (v *view) intern(what identity) uint32 {
	return once(v.ids, what, func() uint32 { return uint32(len(v.ids)) })
}

// identity holds what is shown of a frame, without the address, which differs between
// processes: frames of one identity are the same. Its strings are those of the file: a
// copy for each of a million frames would take much memory.
type identity struct {
	kernel, inlined    bool
	name, module, file string
	addr               uint64 // if there is no name: in the module's file, else the address
	line               uint32
}

func (f *userFrame) identity() identity {
	if f.Name == "" && f.mapping == nil && f.Module == "" {
		return identity{addr: f.addr}
	}
	out := identity{inlined: f.inlined, name: f.Name, module: f.moduleBase(), file: f.File}
	if f.File != "" {
		out.line = f.Line
	}
	if off, ok := f.fileOffset(); ok && f.Name == "" {
		out.addr = off
	}
	return out
}

// text writes a frame as "name [module]", or "0x1234 [module+0x234]".
func (f *userFrame) text() string {
	if f.Name == "" {
		return fmt.Sprintf("%#x", f.addr) + f.suffix()
	}
	return shorten(show.Clean(f.Name)) + f.suffix()
}

// suffix is what follows the name: the module, whether the function is inlined, the line.
func (f *userFrame) suffix() string {
	s := " [" + f.moduleName()
	if f.Name == "" {
		if off, ok := f.fileOffset(); ok {
			s += fmt.Sprintf("+%#x", off)
		}
	}
	s += "]"
	if f.inlined {
		s += " (inlined)"
	}
	if f.File != "" {
		s += " at " + show.Clean(f.File)
		if f.Line > 0 {
			s += fmt.Sprintf(":%d", f.Line)
		}
	}
	return s
}

// modulePath is the path of the file that holds the frame's code, as the machine had it.
func (f *userFrame) modulePath() string { return model.ModulePath(f.Module, f.mapping) }

// moduleName is the last component of modulePath.
func (f *userFrame) moduleName() string { return show.Clean(f.moduleBase()) }

// moduleBase is moduleName before it is cleaned.
func (f *userFrame) moduleBase() string { return model.ModuleOf(f.Module, f.mapping) }

// fileOffset is the offset of the address in the mapped file; false if no file is mapped.
func (f *userFrame) fileOffset() (uint64, bool) {
	if f.mapping == nil || f.mapping.Inode == 0 && f.mapping.Path == "" {
		return 0, false
	}
	return f.addr - f.mapping.Start + f.mapping.Offset, true
}
