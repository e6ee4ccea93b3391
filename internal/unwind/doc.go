// Package unwind turns what the stop took of a thread's user side into its
// frames: registers, frame-pointer chain and copied stack, with the mappings of
// the process and the unwind tables of its files.
//
//	Table    one ELF file: .eh_frame, .debug_frame, .gopclntab
//	Process  where each program counter belongs
//	Input    one thread ──► Unwind ──► Result
//
// It does no I/O but through the io.ReaderAt that a Table is made of, and looks at no
// other process. It builds on any system, so a file can be unwound on another machine.
//
// # Rules
//
//  1. Tables decide, from the innermost frame outwards. The frame-pointer chain is
//     memory like the copied bytes: {frame pointer, return address} at a known
//     address. The unwinder takes a frame from the chain only if the table's rule
//     for that pc leads to a link. Otherwise a leaf without a frame would hide its
//     caller, and a function that uses the frame pointer for something else would
//     lead anywhere.
//  2. If no table covers the code, its own instructions decide (amd64), and only then
//     the frame pointer; this sets UserNoUnwindTable. Generated code has no file: the
//     frame pointer decides. If the unwinder believes a frame pointer, 0 too, without
//     a proof that it is that function's own (unwinder.ownFrame), it sets
//     UserCallersUnsure: callers may be missing. So it does in longjmp and the like, whose
//     tables describe where they jump to.
//  3. Missing memory ends the stack. The unwinder does not try another way then. So
//     fewer bytes give a prefix of what more bytes give.
//  4. The unwinder never scans the stack for what looks like a return address.
//  5. A file is data of somebody else: the unwinder checks every length and count,
//     bounds all sizes, and ends every loop.
//  6. A file that was not read is not a file without tables. The frame pointer decides
//     in its code, because nothing else is known; the unwinder sets UserTablesMissed.
//     From then on neither a frame pointer nor a return address of 0 is an outermost
//     frame: it may be the value of any register. A table's own mark still is.
package unwind
