package filter

import (
	"cmp"
	"slices"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// place is an address in the user space of a task.
type place struct {
	task *kcdata.Task
	kcdata.UserPlace
}

// frameTest is true of threads with a frame on one of their stacks for which kernel or user is
// true. Each address is asked about once.
func frameTest(kernel func(*subject, uint64) bool, user func(place) bool) test {
	addrs, places := map[uint64]bool{}, map[place]bool{}
	return func(x *subject) bool {
		for _, a := range x.thread.Kernel {
			if once(addrs, a, func() bool { return kernel(x, a) }) {
				return true
			}
		}
		for i := range x.thread.User {
			p := place{x.task, x.thread.UserPlace(i)}
			if once(places, p, func() bool { return user(p) }) {
				return true
			}
		}
		return false
	}
}

// funcTest looks at the functions of both stacks, inlined ones too. Of a thread without a
// kernel stack /proc may have told the function in which it sleeps.
func funcTest(m match) test {
	onStack := frameTest(
		func(x *subject, a uint64) bool {
			sym, _ := x.s.Symbols.Name(a)
			return m(sym.Name)
		},
		func(p place) bool {
			for _, f := range p.task.UserSymbols.Functions(p.UserPlace) {
				if m(f.Name) {
					return true
				}
			}
			return false
		})
	return func(x *subject) bool {
		return onStack(x) || len(x.thread.Kernel) == 0 && x.thread.Wchan != "0" && m(x.thread.Wchan)
	}
}

// moduleTest looks at the kernel's modules, and at the files of user frames as the report
// names them.
func moduleTest(m match) test {
	return frameTest(
		func(x *subject, a uint64) bool {
			if sym, ok := x.s.Symbols.Name(a); ok {
				return m(sym.Module)
			}
			return m(x.modules.at(a))
		},
		func(p place) bool {
			mapping := model.MappingOf(p.task, p.UserPlace)
			funcs := p.task.UserSymbols.Functions(p.UserPlace)
			for _, f := range funcs {
				if m(model.ModuleOf(f.Module, mapping)) {
					return true
				}
			}
			return len(funcs) == 0 && m(model.ModuleOf("", mapping))
		})
}

// modules finds the module of a kernel address that has no name.
type modules []kcdata.Module // in ascending order

func modulesOf(s *kcdata.Snapshot) modules {
	byAddr := func(a, b kcdata.Module) int { return cmp.Compare(a.Addr, b.Addr) }
	return slices.SortedFunc(slices.Values(s.Modules), byAddr)
}

// at is "" if no module holds the address.
func (list modules) at(addr uint64) string {
	i, found := slices.BinarySearchFunc(list, addr, func(m kcdata.Module, a uint64) int { return cmp.Compare(m.Addr, a) })
	if !found {
		i--
	}
	if i < 0 || addr-list[i].Addr >= list[i].Size {
		return ""
	}
	return list[i].Name
}
