package collate

import (
	"cmp"
	"maps"
	"slices"

	"stackshot/internal/capture"
	"stackshot/internal/procfs"
	"stackshot/internal/strtab"
	"stackshot/kcdata"
)

// names collects the kernel addresses of the file with their symbols, so that the file
// can be read on another machine. With --redact it also replaces each address by one
// that does not tell where the kernel lies.
type names struct {
	syms   *procfs.Kallsyms // nil: nothing can be named
	mods   []procfs.Module
	redact bool
	text   uint64

	hook *capture.Hook // nil: no stack begins with a hook's frames

	seen    map[uint64]uint64 // address in memory → address in the file
	exact   map[uint64]bool   // of these, where a thread was and not where it returns to
	unknown uint64            // redacted addresses outside every module
	strings *strtab.Table
}

func (k *Collator) newNames(c *capture.Raw) *names {
	redact := c.Wants.Redact
	return &names{
		syms: k.Host.Kallsyms, mods: k.Host.Modules(), redact: redact, text: k.Host.TextAddr(), hook: c.Hook,
		seen: map[uint64]uint64{}, exact: map[uint64]bool{}, strings: strtab.New(),
	}
}

// addresses notes every address of a task's kernel stacks, and replaces it by the one that
// the file shows. Frames that the file does not show are cut first.
func (n *names) addresses(t *taskBytes) error {
	for i := range t.threads {
		th := &t.threads[i]
		if th.kernel.IsZero() {
			continue
		}
		cut, at := 0, 0
		var caller []uint64
		if n.hook != nil {
			cut, caller = n.hookPath(th)
		} else if th.taken && !th.linux.IsZero() {
			cut = n.preemptionPath(kcdata.Elements[uint64](th.kernel.Item()))
		}
		if err := kcdata.Patch(th.kernel, func(frame *uint64) {
			if at++; at > cut {
				if shown := n.note(*frame); shown != *frame {
					*frame = shown
				}
			}
		}); err != nil {
			return err
		}
		if cut > 0 || caller != nil {
			if err := t.cutStack(th, cut, caller); err != nil {
				return err
			}
		}
	}
	return nil
}

// sampled notes the addresses of a sample's stack, whose leaf is no return address, and
// returns them as the file shows them.
func (n *names) sampled(frames []uint64) []uint64 {
	n.exact[frames[0]] = true
	out := make([]uint64, len(frames))
	for i, addr := range frames {
		out[i] = n.note(addr)
	}
	return out
}

func (n *names) note(addr uint64) (shown uint64) {
	shown, ok := n.seen[addr]
	if !ok {
		shown = n.shown(addr)
		n.seen[addr] = shown
	}
	return shown
}

// Redacted addresses. vmlinux: relative to _text. A module: its place in the
// list and the offset in it. Anything else, generated code: a running number.
const (
	redactedModule  = 0x4000_0000_0000_0000
	redactedUnknown = 0x7000_0000_0000_0000
)

func (n *names) shown(addr uint64) uint64 {
	if !n.redact {
		return addr
	}
	for i, m := range n.mods {
		if m.Addr != 0 && addr >= m.Addr && addr < m.Addr+m.Size {
			return redactedModule | uint64(i)<<32 | addr - m.Addr
		}
	}
	if sym, ok := n.name(addr); ok && sym.Module == "" && n.text != 0 && addr >= n.text {
		return addr - n.text
	}
	n.unknown++
	return redactedUnknown | n.unknown
}

// name names an address as a return address, since that is what a stack holds. The
// exception is the leaf of a sample.
func (n *names) name(addr uint64) (procfs.KallsymsSymbol, bool) {
	if n.syms == nil {
		return procfs.KallsymsSymbol{}, false
	}
	if n.exact[addr] {
		return n.syms.Resolve(addr)
	}
	return n.syms.ResolveReturn(addr)
}

func (n *names) symbols() []kcdata.LinuxSymbol {
	out := make([]kcdata.LinuxSymbol, 0, len(n.seen))
	byShown := func(a, b uint64) int { return cmp.Compare(n.seen[a], n.seen[b]) }
	for _, addr := range slices.SortedFunc(maps.Keys(n.seen), byShown) { // so that the same capture gives the same bytes
		sym, ok := n.name(addr)
		if !ok {
			continue
		}
		out = append(out, kcdata.LinuxSymbol{
			Addr: n.seen[addr], Offset: uint32(sym.Offset), Size: uint32(sym.Size),
			Name: n.strings.Add(sym.Name), Module: n.strings.Add(sym.Module),
		})
	}
	return out
}

func (n *names) modules(redact bool) []kcdata.LinuxModule {
	out := make([]kcdata.LinuxModule, 0, len(n.mods))
	for i, m := range n.mods {
		r := kcdata.LinuxModule{Addr: m.Addr, Size: m.Size, Name: n.strings.Add(m.Name), BuildIDLen: uint32(len(m.BuildID))}
		if redact {
			r.Addr = redactedModule | uint64(i)<<32
		}
		r.BuildIDLen = uint32(copy(r.BuildID[:], m.BuildID))
		out = append(out, r)
	}
	return out
}
