// Package foreign reads files that belong to other users: executables and libraries of
// other processes, their perf maps. Any of them may be a trap, by accident or by
// intent: a FIFO, a device whose opening does something, a link to /dev/zero, a file of
// a terabyte, a file on a server that is gone.
//
//	caller ──Where──► way: the file systems on the path, by mountinfo
//	                    ─► one of them may hang, or does? refused, untouched
//	                    ─► room there: one reader at a time until it has answered
//	        helper (a thread of its own, or a process)
//	                    open O_PATH, follow no symbolic link unasked
//	                    ─► fstat: regular? owner? size? the file that was meant?
//	                    ─► fstatfs, if no mountinfo lists the file system
//	                    ─► open O_RDONLY|O_NONBLOCK ─► callback
//	caller ◄──result── or, after Limit, *procfs.TimeoutError
//
// # Invariants
//
//  1. The caller waits for no file: every call that names or touches one, open and
//     statfs included, is made on a helper, of a procfs.Readers of this package's own.
//     After Limit the helper is written off and the call ends.
//  2. The device that a file is mapped from, and the mounts on the path to its name,
//     decide whether it is remote. They are taken from the mountinfo of the process's
//     own namespace. The file system itself is asked only if no mountinfo lists it. A
//     symbolic link is followed only when it is known where it leads.
//  3. A late result is dropped, and a late callback cannot read any further.
//  4. Only regular files are opened for reading. Before that, fstat of an O_PATH descriptor
//     says what a file is: such a descriptor opens no device, and no end of a FIFO.
//  5. A path resolved below a Root does not leave it, whatever links lie there.
//  6. With Options.Command no thread of this process touches a file, except on local
//     file systems when no process can be started. If a reader process hangs, it is
//     killed, and counts as hanging until it is dead.
//  7. A file that hangs blocks its device, not a helper. While a reader of this run hangs
//     on a device, no other file of it is touched; if the device may hang, the same
//     holds for a reader of another run (slots_linux.go). Files of other devices have
//     all Helpers. On a device that has not answered, or that may hang, one file is
//     read at a time; on any other at most Helpers - 1.
//  8. While four readers hang, of all runs on this machine, no file is read on a device
//     that may hang, nor on a device where one of the four hangs. At most Helpers + 4
//     readers hang in one Files; then calls fail at once with procfs.ErrExhausted, until
//     one comes loose.
package foreign
