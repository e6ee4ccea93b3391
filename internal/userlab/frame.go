//go:build linux

package userlab

import (
	"fmt"
	"regexp"
	"strings"
)

// A Frame is one call on a user stack. Its pc is exact for the innermost frame
// and for one that a signal interrupted, else the address after the call.
type Frame struct {
	PC     uint64
	Func   string // "" if nobody knows
	Offset int64  // of PC in Func, or UnknownOffset
	Inline bool   // not a frame of the machine: PC is that of the next one
	Signal bool   // the kernel's signal frame
}

// UnknownOffset says that only the name is known.
const UnknownOffset = -1

// A Thread is what gdb says of a thread.
type Thread struct {
	Tid    int
	Frames []Frame // innermost first
	// Trusted is how many physical frames gdb found by unwinding tables. What
	// is farther out is its guess.
	Trusted   int
	Outermost bool   // the last frame says itself that it is
	Error     string // why gdb ended early, or where it began to guess
}

// A Stack is what is to be judged of a thread.
type Stack struct {
	Tid    int
	Frames []Frame // innermost first; inline frames do not count
	Note   string  // its own word, shown where it is wrong: "truncated", "paged out"
}

// physical leaves the inline frames out.
func physical(frames []Frame) []Frame {
	var out []Frame
	for _, f := range frames {
		if !f.Inline {
			out = append(out, f)
		}
	}
	return out
}

func (f Frame) String() string {
	name := f.Func
	if name == "" {
		name = "?"
	}
	return fmt.Sprintf("%s %#x", name, f.PC)
}

// agrees says whether ours, f, is the frame that gdb has. The name counts where
// gdb has one; two names for one address are the same function, and that they
// are shows in equal offsets.
func (f Frame) agrees(gdb Frame) bool {
	switch {
	case f.PC != gdb.PC:
		return false
	case gdb.Func == "" || gdb.Signal:
		return true
	case f.Func == "":
		return false
	case f.Offset != UnknownOffset && f.Offset == gdb.Offset:
		return true
	}
	return plainName(f.Func) == plainName(gdb.Func)
}

var (
	// What compilers and linkers hang on to a name.
	suffixes = regexp.MustCompile(`(\.(constprop|part|isra|cold|llvm)(\.\d+)?|\.abi0|@.*|::h[0-9a-f]{16})$`)
	trailing = regexp.MustCompile(`( const)?( \[clone [^]]*\])*$`)
)

// plainName is a name without parameters and suffixes.
func plainName(s string) string {
	s = trailing.ReplaceAllString(s, "")
	if strings.HasSuffix(s, ")") {
		if i := openOf(s); i > 0 && s[i-1] != '.' && s[i-1] != ' ' { // "main.(*T)" is of Go
			s = s[:i]
		}
	}
	for {
		t := suffixes.ReplaceAllString(s, "")
		if t == s || t == "" {
			return s
		}
		s = t
	}
}

// openOf gives the place of the parenthesis that the last one closes.
func openOf(s string) int {
	depth := 0
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// InOrder says whether a stack, innermost first, has functions whose names
// contain these, in this order, others between them or not.
func InOrder(frames []Frame, want []string) bool {
	for _, f := range frames {
		if len(want) == 0 {
			break
		}
		if strings.Contains(f.Func, want[0]) {
			want = want[1:]
		}
	}
	return len(want) == 0
}
