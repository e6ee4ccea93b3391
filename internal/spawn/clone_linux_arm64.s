#include "textflag.h"

// func cloneRun(flags uintptr, calls *call) (pid uintptr)
//
// The child never returns and touches no stack.
TEXT ·cloneRun(SB), NOSPLIT, $0-24
	MOVD flags+0(FP), R0
	MOVD calls+8(FP), R9
	MOVD $0, R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $0, R4
	MOVD $220, R8 // clone
	SVC
	CBZ R0, next
	MOVD R0, pid+16(FP)
	RET

next:
	MOVD 0(R9), R8
	CMN $1, R8
	BEQ over
	MOVD 8(R9), R0
	MOVD 16(R9), R1
	MOVD 24(R9), R2
	MOVD 32(R9), R3
	SVC
	ADD $40, R9
	JMP next

over: // execve failed: its errno is the exit code
	NEG R0, R0
	MOVD $94, R8 // exit_group
	SVC
	JMP over
