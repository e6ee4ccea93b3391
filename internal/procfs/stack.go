package procfs

import (
	"bytes"
	"math"
	"strings"
)

// MaxStackDepth is how many frames the kernel writes into a stack file at most
// (MAX_STACK_TRACE_DEPTH of fs/proc/base.c).
const MaxStackDepth = 64

// Frame is one line of a stack file.
type Frame struct {
	Addr   uint64 // 0: hidden ("[<0>]", since 4.15)
	Symbol string // "": the kernel has no name for it; Addr may be known then
	Offset uint64 // bytes into the symbol
	Size   uint64 // bytes of the symbol; 0: not written
	Module string // "": vmlinux
}

// ThreadStack is /proc/PID/task/TID/stack, leaf first. No frames: the thread
// runs, or has no kernel stack.
type ThreadStack struct {
	Frames    []Frame
	Truncated bool // MaxStackDepth frames: there may be more
}

// Parse reads a stack file into a record that is used again: Frames keeps its
// memory. All names share one string, so a stack costs one allocation. Parse skips lines
// that do not begin like a frame; a line that does and has another form is an error.
func (st *ThreadStack) Parse(b []byte) error {
	*st = ThreadStack{Frames: st.Frames[:0]}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		text, isFrame := strings.CutPrefix(line, "[<")
		if !isFrame {
			continue
		}
		f, ok := parseFrame(text)
		if !ok {
			return syntaxError("stack", "frame", []byte(line))
		}
		// Kernels before 5.2 close the list with this mark.
		if f.Addr == math.MaxUint64 && f.Symbol == "" {
			continue
		}
		st.Frames = append(st.Frames, f)
	}
	st.Truncated = len(st.Frames) >= MaxStackDepth
	return nil
}

// parseFrame reads what follows "[<": "0>] name+0x1/0x2 [module]".
func parseFrame(text string) (f Frame, ok bool) {
	addr, rest, ok := strings.Cut(text, ">]")
	if !ok {
		return Frame{}, false
	}
	if f.Addr, ok = parseHex(addr); !ok {
		return Frame{}, false
	}
	rest = strings.TrimSpace(rest)
	rest = strings.TrimSpace(strings.TrimPrefix(rest, "? ")) // a guess of the unwinder
	name, module, hasModule := strings.Cut(rest, " [")
	if hasModule {
		if f.Module, ok = strings.CutSuffix(module, "]"); !ok || f.Module == "" {
			return Frame{}, false
		}
	}
	return f, f.place(name)
}

// place reads "name+0x1/0x2", "name+0x1" or, without a name, "0xffff…".
func (f *Frame) place(name string) bool {
	plus := strings.LastIndex(name, "+0x")
	if plus < 0 {
		digits, isAddr := strings.CutPrefix(name, "0x")
		if addr, ok := parseHex(digits); ok && isAddr {
			f.Addr = addr
			return true
		}
		f.Symbol = name
		return name != ""
	}
	f.Symbol = name[:plus]
	offset, size, hasSize := strings.Cut(name[plus+len("+0x"):], "/0x")
	okOffset, okSize := false, true
	f.Offset, okOffset = parseHex(offset)
	if hasSize {
		f.Size, okSize = parseHex(size)
	}
	return f.Symbol != "" && okOffset && okSize
}

// ParseWchan reads a wchan file: the function in which a thread sleeps, or "0", which
// gives "": it does not sleep, or the kernel does not say.
func ParseWchan(b []byte) string {
	b = bytes.TrimSpace(b)
	if string(b) == "0" {
		return ""
	}
	return string(b)
}
