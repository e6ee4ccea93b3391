package unwind

import (
	"errors"
	"fmt"

	"stackshot/kcdata"
)

const (
	defaultMax = 256
	limitMax   = 1000 // the largest Max
)

// Process is the code of one process. Find must give the same answer for the
// same address as long as it is used, and be safe for concurrent use if Unwind
// is used so.
type Process struct {
	Arch string // "amd64" or "arm64", or as uname says it
	// Find returns the executable mapping that holds pc, nil for none, and the
	// table of its file: nil for generated code, and where the file could not be
	// read.
	Find func(pc uint64) (*kcdata.Mapping, *Table)

	// Missed says whether something of a file that the stack at hand asked for,
	// its table or a piece of its code, was not read: rule 6. nil: never.
	Missed func() bool

	Work *Work // shared by the processes of a capture; nil: no limit
}

// Input is what was taken of one thread.
type Input struct {
	Registers     []uint64               // in the order of kcdata.LinuxRegister
	Chain         []kcdata.LinuxUserLink // the frame-pointer chain, leaf first
	ChainComplete bool                   // the frame pointer stored at the last link is 0
	Stack         []kcdata.UserBytes     // pieces of the stack, ascending
	Few           *FewRegisters          // in the place of Registers, if no more is known
	Max           int                    // frames at most; 0: 256; never more than 1000
}

// FewRegisters are what /proc says of a thread that nobody has stopped.
type FewRegisters struct{ SP, PC uint64 }

// Result is a stack.
type Result struct {
	PCs      []uint64 // leaf first: the program counter, then return addresses, or where a signal struck
	How      []byte   // for each of them a kcdata.UserFrame*
	Flags    uint32   // of kcdata.LinuxUserWalk: what unwinding found out
	StopAddr uint64   // the stack address that is missing, or the code that led no further; 0 if complete or truncated
	Err      error    // why it ended there; nil if complete or truncated
}

// stop is the end of a stack.
type stop struct {
	flag uint32
	addr uint64
	err  error
}

var complete = &stop{flag: kcdata.UserComplete}

func noMemory(addr uint64) *stop {
	return &stop{kcdata.UserNoMoreBytes, addr, errMemory(addr)}
}

func noTable(pc uint64, err error) *stop {
	return &stop{kcdata.UserNoUnwindTable, pc, err}
}

// missed is the Process's Missed.
func (u *unwinder) missed() bool { return u.p.Missed != nil && u.p.Missed() }

// outermost ends the stack at a frame pointer or return address of 0. If a table was
// missed, the 0 says nothing: any register or word may have been taken for it.
func (u *unwinder) outermost() *stop {
	if u.missed() {
		return &stop{kcdata.UserTablesMissed, u.pc, errMissed}
	}
	return complete
}

var errMissed = errors.New("0 is the end of the stack only if the code that led there is known, and that was not read")

// unwinder is the state of one Unwind. Used by one goroutine.
type unwinder struct {
	p     *Process
	arch  *arch
	mem   *memory // nil in Chain
	flags uint32

	regs  registers // of the frame at hand
	pc    uint64
	exact bool // pc is where the frame stands, not behind its call
	leaf  bool
	few   bool // most registers were not known from the start

	returns bool // a callee's code leads back to pc

	next found // the frame above, while it is made: one for all frames
}

// found is the frame above.
type found struct {
	regs  registers
	how   byte
	exact bool // it did not call: it was interrupted
	moved bool // on another stack: its stack pointer cannot be compared

	returns bool // the code below leads back to it
}

// caller begins the frame above.
func (u *unwinder) caller(f found) *found {
	u.next = f
	return &u.next
}

// Unwind returns the frames of one thread. Without Find they are those of the
// chain alone, and UserNoLoadInfo is set.
func (p *Process) Unwind(in Input) Result {
	if p.Find == nil {
		res := p.Chain(in)
		res.Flags |= kcdata.UserNoLoadInfo
		return res
	}
	u, err := p.begin(&in)
	if err != nil {
		return Result{Err: err}
	}
	u.mem = newMemory(&in)
	return u.walk(frames(in.Max))
}

// begin is the state at the first frame: the thread's own registers.
func (p *Process) begin(in *Input) (*unwinder, error) {
	a := archOf(p.Arch)
	if a == nil {
		return nil, fmt.Errorf("unwinding of %q is not known", p.Arch)
	}
	regs, ok := a.load(in.Registers)
	if in.Few != nil {
		regs, ok = registers{}, true
		regs.set(a.sp, in.Few.SP)
		regs.set(a.pc, in.Few.PC)
	}
	if !ok {
		return nil, fmt.Errorf("%d user registers, %s has %d", len(in.Registers), a.name, len(a.order))
	}
	u := &unwinder{p: p, arch: a, regs: regs, leaf: true, exact: true, few: in.Few != nil}
	u.pc, _ = regs.get(a.pc)
	return u, nil
}

func frames(wanted int) int {
	if wanted <= 0 {
		return defaultMax
	}
	return min(wanted, limitMax)
}

func (u *unwinder) walk(most int) Result {
	res := Result{PCs: []uint64{u.pc}, How: []byte{kcdata.UserFrameRegs}, Flags: kcdata.UserUnwound}
	for {
		above, end := u.above()
		if end == nil {
			end = u.enter(above)
		}
		if end == nil && len(res.PCs) == most {
			end = &stop{flag: kcdata.UserTruncated}
		}
		if end != nil {
			res.Flags |= u.flags | u.endFlags(end)
			res.StopAddr, res.Err = end.addr, end.err
			return res
		}
		res.PCs, res.How = append(res.PCs, u.pc), append(res.How, above.how)
	}
}

// endFlags are the flags of an end. If a table was missed, that is why no table led on.
func (u *unwinder) endFlags(end *stop) uint32 {
	switch {
	case !u.missed():
		return end.flag
	case end.flag == kcdata.UserNoUnwindTable:
		return kcdata.UserTablesMissed
	}
	return end.flag | kcdata.UserTablesMissed
}

// enter makes the frame above the current one, if it can be one.
func (u *unwinder) enter(above *found) *stop {
	pc, ok := above.regs.get(u.arch.pc)
	if !ok {
		return noTable(u.pc, errors.New("the return address is not known"))
	}
	if pc == 0 {
		return u.outermost()
	}
	pc = u.arch.stripped(pc, u.mapped)
	if !u.mapped(pc) {
		return &stop{kcdata.UserNoMapping, pc, fmt.Errorf("the return address %#x is in no executable mapping", pc)}
	}
	if !u.upward(above, pc) {
		return noTable(u.pc, fmt.Errorf("the frame of %#x does not lead up the stack", u.pc))
	}
	u.regs, u.pc, u.exact, u.leaf, u.returns = above.regs, pc, above.exact, false, above.returns
	return nil
}

// upward says whether a frame is nearer to the stack's start than its callee. Only code
// that has not called may take no room, where calls do not push or the return address is in
// a register: vfork has popped it.
func (u *unwinder) upward(above *found, pc uint64) bool {
	sp, known := u.regs.get(u.arch.sp)
	next, nextKnown := above.regs.get(u.arch.sp)
	if above.moved || !known || !nextKnown || next > sp {
		return true
	}
	return next == sp && u.exact && (u.arch.lr >= 0 || above.how == kcdata.UserFrameLR) && pc != u.pc
}

func (u *unwinder) mapped(pc uint64) bool {
	if u.p.Find == nil {
		return false
	}
	m, _ := u.p.Find(pc)
	return m != nil
}

// above finds the frame that called the one at hand, or was interrupted by it.
func (u *unwinder) above() (*found, *stop) {
	lookup := u.pc
	if !u.exact {
		lookup-- // within the call, whose rules apply: the next instruction may be another function's
	}
	m, t := u.p.Find(lookup)
	if m == nil {
		return nil, &stop{kcdata.UserNoMapping, u.pc, fmt.Errorf("%#x is in no executable mapping", u.pc)}
	}
	if t == nil {
		if m.Path != "" && m.Flags&kcdata.MappingAnon == 0 && !u.missed() {
			u.flags |= kcdata.UserNoUnwindTable
		}
		return u.guess()
	}
	addr, ok := t.AddrOf(lookup - m.Start + m.Offset)
	if !ok || t.arch != u.arch {
		return nil, noTable(u.pc, fmt.Errorf("%#x is in no code of its file", u.pc))
	}
	row, err := t.rowAt(addr, u.p.Work)
	if err != nil {
		return nil, noTable(u.pc, err)
	}
	if !u.exact && (row == nil || row.end == addr+1) && t.restores(addr+1) {
		return u.bySignalFrame()
	}
	switch {
	case row == nil:
		return u.withoutTable(t, addr, lookup)
	case row.golang != nil:
		return u.byGo(row.golang)
	case row.signal && u.arch.lr >= 0:
		return u.bySignalFrame() // its rules give no more than frame pointer and link register
	}
	return u.byRules(row)
}

// byFramePointer takes the caller from the frame pointer alone: generated code has
// nothing else.
func (u *unwinder) byFramePointer() (*found, *stop) {
	fp, _, end := u.register(u.arch.fp, 0)
	if end != nil {
		return nil, end
	}
	if fp == 0 {
		return nil, u.outermost()
	}
	if sp, ok := u.regs.get(u.arch.sp); fp%8 != 0 || ok && fp < sp {
		return nil, noTable(u.pc, fmt.Errorf("%#x is no frame pointer", fp))
	}
	return u.frameRecord(fp, kcdata.UserFrameFP)
}

// frameRecord reads the pair {frame pointer, return address} at fp.
func (u *unwinder) frameRecord(fp uint64, how byte) (*found, *stop) {
	ret, _, ok := u.mem.word(fp + 8)
	if !ok {
		return nil, noMemory(fp + 8)
	}
	f := u.caller(found{how: how})
	f.regs.set(u.arch.pc, ret)
	if next, _, ok := u.mem.word(fp); ok {
		f.regs.set(u.arch.fp, next)
	}
	if u.arch.lr < 0 {
		// On arm64 the record is at the bottom of its frame: no stack pointer.
		f.regs.set(u.arch.sp, fp+16)
	}
	return f, nil
}

// Chain returns the frames that the frame-pointer chain alone gives. Callers of
// functions without a frame are missing.
func (p *Process) Chain(in Input) Result {
	u, err := p.begin(&in)
	if err != nil {
		return Result{Err: err}
	}
	res := Result{PCs: []uint64{u.pc}, How: []byte{kcdata.UserFrameRegs}}
	for _, l := range in.Chain {
		if len(res.PCs) == frames(in.Max) {
			res.Flags |= kcdata.UserTruncated
			return res
		}
		res.PCs, res.How = append(res.PCs, u.arch.stripped(l.PC, u.mapped)), append(res.How, kcdata.UserFrameFP)
	}
	if in.ChainComplete {
		res.Flags |= kcdata.UserComplete
	}
	return res
}
