// Package unwind turns what the stop took of a thread's user side into its
// frames: registers, frame-pointer chain and copied stack, with the mappings of
// the process and the unwind tables of its files.
//
//	Table    one ELF file: .eh_frame, .debug_frame, .gopclntab
//	Process  where each program counter belongs
//	Input    one thread ──► Unwind ──► Result
//
// It does no I/O but through the io.ReaderAt that a Table is made of, looks at
// no other process, and builds on any system, so a file is unwound elsewhere
// just as well.
//
// # Rules
//
//  1. Tables decide, from the top down. The frame-pointer chain is memory like
//     the copied bytes: {frame pointer, return address} at a known address. A
//     frame is taken from it where the table's own rule for that pc leads to a
//     link. Otherwise a leaf without a frame hides its caller, and a function
//     that uses the frame pointer for something else leads anywhere.
//  2. Code that no table covers is judged by its own instructions (amd64), and
//     only then by the frame pointer; this sets UserNoUnwindTable. Generated code,
//     which has no file, goes by frame pointer. Wherever a frame pointer, 0 too,
//     was believed without a proof that it is that function's own
//     (unwinder.ownFrame), UserCallersUnsure says so: callers may be missing.
//  3. Missing memory ends the stack; it never makes another way be tried. So
//     fewer bytes give a prefix of what more bytes give.
//  4. The stack is never scanned for what looks like a return address.
//  5. A file is data of somebody else: every length and count is checked, sizes
//     are bounded, and every loop ends.
//  6. A file that was not read is not one without tables. Its code goes by frame
//     pointer, for want of better; UserTablesMissed is set, and neither a frame
//     pointer nor a return address of 0 is an outermost frame from then on: what is
//     taken for one may be any register. A table's own mark still is.
package unwind
