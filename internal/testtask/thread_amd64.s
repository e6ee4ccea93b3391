//go:build linux

#include "go_asm.h"
#include "textflag.h"

// func startThread(flags uintptr, s *step) uintptr
//
// The new thread shares the stack pointer of its maker: below the clone there
// is no push, no call and no memory operand on the stack, and signals are
// blocked, so nothing of it is ever used.
TEXT ·startThread(SB), NOSPLIT, $0-24
	MOVQ flags+0(FP), DI
	MOVQ s+8(FP), R12
	XORL SI, SI
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVL $56, AX // clone
	SYSCALL
	TESTQ AX, AX
	JZ again
	MOVQ AX, ret+16(FP)
	RET
again:
	MOVQ step_nr(R12), AX
	MOVQ (step_arg+0)(R12), DI
	MOVQ (step_arg+8)(R12), SI
	MOVQ (step_arg+16)(R12), DX
	MOVQ (step_arg+24)(R12), R10
	MOVQ (step_arg+32)(R12), R8
	MOVQ (step_arg+40)(R12), R9
	SYSCALL
	CMPQ step_once(R12), $0
	JEQ again
	MOVL $60, AX // exit, of this thread only
	XORL DI, DI
	SYSCALL
	INT $3
