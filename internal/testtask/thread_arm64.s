//go:build linux

#include "go_asm.h"
#include "textflag.h"

// func startThread(flags uintptr, s *step) uintptr
//
// The new thread shares the stack pointer of its maker: below the clone there
// is no push, no call and no memory operand on the stack, and signals are
// blocked, so nothing of it is ever used.
TEXT ·startThread(SB), NOSPLIT|NOFRAME, $0-24
	MOVD flags+0(FP), R0
	MOVD s+8(FP), R9
	MOVD ZR, R1
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD $220, R8 // clone
	SVC
	CBZ R0, again
	MOVD R0, ret+16(FP)
	RET
again:
	MOVD step_nr(R9), R8
	MOVD (step_arg+0)(R9), R0
	MOVD (step_arg+8)(R9), R1
	MOVD (step_arg+16)(R9), R2
	MOVD (step_arg+24)(R9), R3
	MOVD (step_arg+32)(R9), R4
	MOVD (step_arg+40)(R9), R5
	SVC
	MOVD step_once(R9), R10
	CBZ R10, again
	MOVD $93, R8 // exit, of this thread only
	MOVD ZR, R0
	SVC
	BRK
