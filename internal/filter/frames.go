package filter

import (
	"cmp"
	"slices"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// funcTest looks at the functions of both stacks, inlined ones too. Of a thread without a
// kernel stack /proc may have told the function in which it sleeps.
func funcTest(m match) test {
	return func(x *subject) bool {
		for _, a := range x.thread.Kernel {
			if sym, ok := x.s.Symbols.Name(a); ok && m(sym.Name) {
				return true
			}
		}
		for i := range x.thread.User {
			for _, f := range x.task.UserSymbols.Functions(x.thread.UserPlace(i)) {
				if m(f.Name) {
					return true
				}
			}
		}
		return len(x.thread.Kernel) == 0 && x.thread.Wchan != "0" && m(x.thread.Wchan)
	}
}

// moduleTest looks at the kernel's modules, and at the files of user frames as the report
// names them.
func moduleTest(m match) test {
	return func(x *subject) bool {
		for _, a := range x.thread.Kernel {
			sym, ok := x.s.Symbols.Name(a)
			if m(sym.Module) || !ok && m(x.modules.at(a)) {
				return true
			}
		}
		for i := range x.thread.User {
			p := x.thread.UserPlace(i)
			mapping, funcs := model.MappingOf(x.task, p), x.task.UserSymbols.Functions(p)
			for _, f := range funcs {
				if m(model.ModuleOf(f.Module, mapping)) {
					return true
				}
			}
			if len(funcs) == 0 && m(model.ModuleOf("", mapping)) {
				return true
			}
		}
		return false
	}
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
