// Package capture is one capture of the machine as a value: what was recorded, and
// everything that the capture knows of itself. Engines make it, collation makes the
// file of it. It is plain data: it can be written down, read in another process and
// collated there.
//
//	Raw      the whole
//	Part     the records of one task, or of some threads of it, as pieces of KCData
//	Failure  a task that was seen and is not recorded
//	Second   what was read of each thread a second time, when all was recorded
//	Sample   what a CPU ran that was not stopped
package capture
