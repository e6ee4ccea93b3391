// Package trapmemory reads what the programs of engine trap left in their memory, as plain bytes:
// beside the programs when the machine runs on, or out of a dump of a machine that has
// panicked in the middle of a stop.
//
//	Memory   the items, what became of each, the bytes of their records
//	Place    writes, into kernel memory, where the memory of a loaded trap lies (panicregion.KindLive)
//	Live     reads it again, out of a dump
//
// A dump holds the programs' structures as they are (bpf.TrapPart and so on). So a change to one
// of them needs a new panicregion.Version; TestLayoutOfVersion holds their sizes.
package trapmemory
