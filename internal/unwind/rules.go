package unwind

import (
	"bytes"
	"errors"
	"fmt"

	"stackshot/kcdata"
)

// byRules finds the caller by call frame information.
func (u *unwinder) byRules(r *row) (*found, *stop) {
	how := r.rule(r.retReg)
	if how.kind == ruleUndefined {
		return nil, complete
	}
	cfa, end := u.cfa(r)
	if end != nil {
		return nil, end
	}
	f := u.caller(found{regs: u.regs, how: r.how, exact: r.signal, moved: r.signal})
	f.regs.set(u.arch.sp, cfa)
	f.regs.forget(u.arch.pc)
	for _, rr := range r.regs {
		if rr.reg == r.retReg || u.popped(r, rr, cfa) {
			continue
		}
		// A register that cannot be had matters only if it is asked for.
		if v, _, end := u.apply(rr.rule, rr.reg, cfa); end == nil {
			f.regs.set(rr.reg, v)
		} else {
			f.regs.forget(rr.reg)
		}
	}
	// longjmp and setcontext describe the place that they are about to jump to, as their
	// argument has it. Their callers are others.
	if r.cfa.kind == ruleRegister && r.cfa.reg == u.arch.argument {
		u.flags |= kcdata.UserCallersUnsure
	}
	return f, u.returnAddress(r, how, cfa, f)
}

// rule is the rule of a register. One without a rule keeps the callee's value.
func (r *rules) rule(reg int) rule {
	if i, found := findRule(r.regs, reg); found {
		return r.regs[i].rule
	}
	return rule{kind: ruleSame}
}

// popped says whether a register has its caller's value again: an epilogue has popped it,
// and the rule that remains leads to below the stack pointer. A function that saves there
// without ever moving the stack pointer so far has not popped it. What lies there does not
// count: a signal may have overwritten it.
func (u *unwinder) popped(r *row, rr regRule, cfa uint64) bool {
	sp, _ := u.regs.get(u.arch.sp)
	return u.exact && rr.kind == ruleAt && rr.offset < 0 && cfa+uint64(rr.offset) < sp && -rr.offset <= r.deepest
}

func (u *unwinder) returnAddress(r *row, how rule, cfa uint64, f *found) *stop {
	if how.kind == ruleSame && (u.arch.lr < 0 || !u.exact) {
		return noTable(u.pc, fmt.Errorf("code at %#x does not say where its return address is", u.pc))
	}
	v, fromChain, end := u.apply(how, r.retReg, cfa)
	if end != nil {
		return end
	}
	f.regs.set(u.arch.pc, v)
	switch {
	case r.signal:
		f.how = kcdata.UserFrameSignal
	case fromChain:
		f.how = kcdata.UserFrameFP
	case how.kind == ruleSame, how.kind == ruleRegister:
		f.how = kcdata.UserFrameLR
	}
	if u.arch.lr >= 0 && !r.signal {
		f.regs.forget(u.arch.lr) // the call has overwritten it
	}
	return nil
}

// cfa computes the canonical frame address: the stack pointer before the call.
func (u *unwinder) cfa(r *row) (uint64, *stop) {
	if r.cfa.kind == ruleRegister && r.cfa.reg == u.arch.sp {
		if _, ok := u.regs.get(u.arch.sp); !ok {
			return u.cfaOfRecord(r)
		}
	}
	v, _, end := u.apply(r.cfa, -1, 0)
	return v, end
}

// cfaOfRecord is for arm64 after a frame that was found by frame pointer alone.
// Compilers set the frame pointer to where they save the pair, so the rule of
// the saved frame pointer tells the frame address.
func (u *unwinder) cfaOfRecord(r *row) (uint64, *stop) {
	fp, ret := r.rule(u.arch.fp), r.rule(r.retReg)
	at, ok := u.regs.get(u.arch.fp)
	if !ok || fp.kind != ruleAt || ret.kind != ruleAt || ret.offset != fp.offset+8 {
		return 0, noTable(u.pc, fmt.Errorf("the stack pointer at %#x is not known", u.pc))
	}
	return at - uint64(fp.offset), nil
}

// apply computes a value by its rule. reg is the register that it is for.
func (u *unwinder) apply(r rule, reg int, cfa uint64) (v uint64, fromChain bool, end *stop) {
	switch r.kind {
	case ruleSame:
		return u.register(reg, 0)
	case ruleRegister:
		return u.register(r.reg, r.offset)
	case ruleValue:
		return cfa + uint64(r.offset), false, nil
	case ruleAt:
		return u.word(cfa + uint64(r.offset))
	case ruleAtExpression, ruleValExpression:
		v, end = u.expression(r, reg, cfa)
		if end != nil || r.kind == ruleValExpression {
			return v, false, end
		}
		return u.word(v)
	}
	return 0, false, noTable(u.pc, fmt.Errorf("register %d is not defined at %#x", reg, u.pc))
}

func (u *unwinder) register(reg int, offset int64) (uint64, bool, *stop) {
	v, ok := u.regs.get(reg)
	if !ok {
		return 0, false, u.noRegister(reg)
	}
	return v + uint64(offset), false, nil
}

// noRegister ends the stack where a register is needed that is not known.
func (u *unwinder) noRegister(reg int) *stop {
	flag := uint32(kcdata.UserNoMoreBytes)
	if u.few {
		flag = kcdata.UserNoRegister
	}
	return &stop{flag, u.pc, fmt.Errorf("register %d is not known at %#x", reg, u.pc)}
}

func (u *unwinder) word(addr uint64) (uint64, bool, *stop) {
	v, fromChain, ok := u.mem.word(addr)
	if !ok {
		return 0, false, noMemory(addr)
	}
	return v, fromChain, nil
}

// expression runs a DWARF expression; a register's starts with the CFA.
func (u *unwinder) expression(r rule, reg int, cfa uint64) (uint64, *stop) {
	var first []uint64
	if reg >= 0 {
		first = []uint64{cfa}
	}
	v, err := evaluate(r.expr, &u.regs, u.mem, first...)
	var absent errMemory
	switch {
	case errors.As(err, &absent):
		return 0, noMemory(uint64(absent))
	case err != nil:
		return 0, noTable(u.pc, err)
	}
	return v, nil
}

// restores says whether the code at addr, link-time, is what a signal handler
// returns to. C libraries without call frame information have it in two
// instructions.
func (t *Table) restores(addr uint64) bool {
	is, known := t.restorers.get(addr)
	if known {
		return is
	}
	code, err := t.codeAt(addr, 16)
	if err != nil {
		return false
	}
	for _, pattern := range t.arch.restorer {
		is = is || bytes.HasPrefix(code, pattern)
	}
	t.restorers.put(addr, is)
	return is
}

// bySignalFrame takes the registers that the kernel saved before a handler ran.
func (u *unwinder) bySignalFrame() (*found, *stop) {
	sp, ok := u.regs.get(u.arch.sp)
	if !ok {
		return nil, noTable(u.pc, errors.New("the stack pointer of a signal frame is not known"))
	}
	f := u.caller(found{how: kcdata.UserFrameSignal, exact: true, moved: true})
	at := sp + u.arch.contextAt
	for i, reg := range u.arch.contextOrder {
		addr := at + uint64(i)*8
		if v, _, ok := u.mem.word(addr); ok {
			f.regs.set(int(reg), v)
		} else if int(reg) == u.arch.pc {
			return nil, noMemory(addr)
		}
	}
	return f, nil
}
