package snapshot

// Names of engines, as a file has them.
const (
	engineTrap   = "trap"
	enginePull   = "pull"
	engineProcfs = "procfs"
)

// Isolation levels, as a file has them: how still the world stood.
const (
	isolationIRQOff     = "irqoff"     // nothing ran but NMIs
	isolationPreemptOff = "preemptoff" // interrupts ran
	isolationFIFO       = "fifo"       // interrupts ran, no ordinary task did
	isolationNone       = "none"       // everything ran
)
