package unwind

import (
	"errors"
	"fmt"
	"sync/atomic"

	"stackshot/kcdata"
)

// A row says how to find the caller's registers, of one program counter.
type row struct {
	rules
	retReg int
	how    byte // kcdata.UserFrame*
	signal bool // the kernel made this frame: the caller was interrupted, it did not call
	golang *goRow
	end    uint64 // of the function, link-time; 0 of Go's
}

type ruleKind uint8

const (
	ruleUndefined     ruleKind = iota
	ruleSame                   // the callee's value
	ruleAt                     // at CFA + offset
	ruleValue                  // CFA + offset
	ruleRegister               // another register's, + offset
	ruleAtExpression           // at what the expression yields
	ruleValExpression          // what the expression yields
)

type rule struct {
	kind   ruleKind
	reg    int
	offset int64
	expr   []byte
}

type regRule struct {
	reg int
	rule
}

// rowAt returns the rules of the FDE that covers pc, nil for none.
func (s *frameSection) rowAt(pc uint64, w *Work) (*row, error) {
	f, err := s.find(pc)
	if f == nil {
		return nil, err
	}
	w.spent(len(f.cie.instructions) + len(f.instructions))
	found, err := s.rulesAt(f, pc)
	if err != nil {
		return nil, s.fail(uint64(cap(s.data)-cap(f.instructions)), "code at %#x: %v", pc, err)
	}
	if found.cfa.kind == ruleUndefined {
		return nil, fmt.Errorf("code at %#x has no rule for its frame", f.begin)
	}
	return &row{
		rules: found, retReg: int(min(f.cie.retReg, maxRegister)),
		how: kcdata.UserFrameCFI, signal: f.cie.signal, end: f.end,
	}, nil
}

// maxWork bounds the call frame instructions of all rows of one capture, bytes: some
// seconds of work. A real row has a few dozen bytes. But a hostile program may have
// 64 KiB for each function, and any number of program counters on its stacks.
const maxWork = 64 << 20

var errWork = errors.New("the call frame instructions of all stacks are too long")

// Work counts what making rows has cost. Safe for concurrent use; nil is without limit.
type Work struct{ done atomic.Int64 }

// spent counts n bytes of instructions.
func (w *Work) spent(n int) {
	if w != nil {
		w.done.Add(int64(n))
	}
}

func (w *Work) over() bool { return w != nil && w.done.Load() > maxWork }
