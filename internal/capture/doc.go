// Package capture is one capture of the machine as a value: what was recorded, and what
// is known about the capture itself. An engine makes the value, and collation makes the
// file from it. It is plain data: another process can collate it.
//
//	Raw      the whole
//	Part     the records of one task, or of some threads of it, as pieces of KCData
//	Failure  a task that was seen and is not recorded
//	Second   what the second pass read of each thread
//	Sample   what a CPU that was not stopped ran
package capture
