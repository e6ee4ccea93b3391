// Package foreign reads files that belong to other people: executables and
// libraries of other processes, their perf maps. Any of them may be a trap, by
// accident or by intent: a FIFO, a device whose opening does something, a link
// to /dev/zero, a file of a terabyte, a file on a server that is gone.
//
//	caller ──Where──► helper (one of at most four, each a thread of its own, or a process)
//	                    open O_PATH ─► fstat: regular? owner? size? the file meant?
//	                                ─► fstatfs: on this machine?
//	                                ─► open O_RDONLY|O_NONBLOCK ─► callback
//	caller ◄──result── or, after Limit, *procfs.TimeoutError
//
// # Invariants
//
//  1. The caller waits for no file: everything that names or touches one, opening
//     and statfs included, happens on a helper of an own procfs.Readers. After
//     Limit the helper is written off and the call ends.
//  2. At most Helpers threads ever hang; with all of them hanging, calls fail at
//     once with procfs.ErrExhausted, until one comes loose.
//  3. A late result is dropped, and a callback that is late can read no further.
//  4. Nothing but a regular file is opened: what it is, is asked of an O_PATH
//     descriptor, which opens no FIFO's other end and no device.
//  5. A path resolved below a Root does not leave it, whatever links lie there.
//  6. With Options.Command no thread of this process touches a file. What hangs is
//     the process that does; it is killed, and counts as hanging until it is dead.
package foreign
