package unwind

import (
	"bytes"
	"fmt"

	"github.com/go-delve/delve/pkg/dwarf/frame"

	"stackshot/kcdata"
)

// A row says how to find the caller's registers, of one program counter.
type row struct {
	cfa    rule // of kind ruleRegister or ruleValExpression
	regs   []regRule
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
func (s *frameSection) rowAt(pc uint64, a *arch, w *Work) (*row, error) {
	f, err := s.find(pc)
	if f == nil {
		return nil, err
	}
	common, own, err := portable(s, f)
	w.spent(len(f.cie.instructions) + len(f.instructions) + len(common) + len(own))
	if err != nil {
		return nil, s.fail(uint64(cap(s.data)-cap(f.instructions)), "code at %#x: %v", pc, err)
	}
	ctx, err := run(f, common, own, pc)
	if err != nil {
		return nil, s.fail(uint64(cap(s.data)-cap(f.instructions)), "code at %#x: %v", pc, err)
	}
	return newRow(ctx, f, a)
}

func newRow(ctx *frame.FrameContext, f *fde, a *arch) (*row, error) {
	r := &row{how: kcdata.UserFrameCFI, signal: f.cie.signal, end: f.end, retReg: int(min(f.cie.retReg, maxRegister))}
	switch ctx.CFA.Rule {
	case frame.RuleCFA:
		r.cfa = rule{kind: ruleRegister, reg: int(min(ctx.CFA.Reg, maxRegister)), offset: ctx.CFA.Offset}
	case frame.RuleExpression:
		r.cfa = rule{kind: ruleValExpression, expr: bytes.Clone(ctx.CFA.Expression)}
	default:
		return nil, fmt.Errorf("code at %#x has no rule for its frame", f.begin)
	}
	// In the order of the numbers, so that results do not depend on a map's.
	for reg := range maxRegs {
		if dw, ok := ctx.Regs[uint64(reg)]; ok {
			r.regs = append(r.regs, regRule{reg, ruleOf(dw)})
		}
	}
	return r, nil
}

func ruleOf(dw frame.DWRule) rule {
	switch dw.Rule {
	case frame.RuleSameVal:
		return rule{kind: ruleSame}
	case frame.RuleOffset:
		return rule{kind: ruleAt, offset: dw.Offset}
	case frame.RuleValOffset:
		return rule{kind: ruleValue, offset: dw.Offset}
	case frame.RuleRegister:
		return rule{kind: ruleRegister, reg: int(min(dw.Reg, maxRegister))}
	case frame.RuleExpression:
		return rule{kind: ruleAtExpression, expr: bytes.Clone(dw.Expression)}
	case frame.RuleValExpression:
		return rule{kind: ruleValExpression, expr: bytes.Clone(dw.Expression)}
	}
	return rule{kind: ruleUndefined}
}
