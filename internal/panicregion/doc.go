// Package panicregion is the memory that a panic leaves behind: how it is laid out, so that
// whoever has a dump of the machine's memory finds it and reads it without anything else.
//
//	page 0           the head: two copies of Static (one is whole while the other is
//	                 written anew), and from RunAt on what the walk says of itself
//	list pages       which frames of physical memory the region lies in, page by page
//	sections         what Static names: the description of the machine, the records
//
// The memory of a BPF map is one range of addresses and many frames, and a dump is by frames. So
// each list page says by itself what it is: magic, boot, region, its place in the list,
// checksum. Head and list pages also make a frames file, so that nobody need search a dump.
//
// There are two kinds of region. KindPanic is the resident's (stackshot arm), where a SysRq's or
// a panic's walk records. KindLive describes the memory of a capture that stopped the machine when
// it panicked.
//
// The package trusts nothing that it reads, does no I/O, and runs on any OS.
package panicregion
