package capture

// Names of engines, as a file has them.
const (
	Trap   = "trap"
	Pull   = "pull"
	Procfs = "procfs"
	Panic  = "panic" // the kernel's own last act, read out of a dump
	Sysrq  = "sysrq" // the same program, begun by a SysRq
)

// Isolation levels, as a file has them: how still the world stood.
const (
	IRQOff     = "irqoff"     // nothing ran but NMIs
	PreemptOff = "preemptoff" // interrupts ran
	FIFO       = "fifo"       // interrupts ran, no ordinary task did
	None       = "none"       // everything ran
)
