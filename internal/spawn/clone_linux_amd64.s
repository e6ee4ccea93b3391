#include "textflag.h"

// func cloneRun(flags uintptr, calls *call) (pid uintptr)
//
// The child never returns and touches no stack.
TEXT ·cloneRun(SB), NOSPLIT, $0-24
	MOVQ flags+0(FP), DI
	MOVQ calls+8(FP), BX
	XORL SI, SI
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVL $56, AX // clone
	SYSCALL
	TESTQ AX, AX
	JEQ next
	MOVQ AX, pid+16(FP)
	RET

next:
	MOVQ 0(BX), R12
	CMPQ R12, $-1
	JEQ over
	MOVQ R12, AX
	MOVQ 8(BX), DI
	MOVQ 16(BX), SI
	MOVQ 24(BX), DX
	MOVQ 32(BX), R10
	SYSCALL
	ADDQ $40, BX
	JMP next

over: // execve failed: its errno is the exit code
	NEGQ AX
	MOVQ AX, DI
	MOVL $231, AX // exit_group
	SYSCALL
	JMP over
