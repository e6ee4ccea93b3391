// Package foreign reads files that belong to other people: executables and
// libraries of other processes, their perf maps. Any of them may be a trap, by
// accident or by intent: a FIFO, a device whose opening does something, a link
// to /dev/zero, a file of a terabyte, a file on a server that is gone.
//
//	caller ──Where──► way: which file systems lie on it, by mountinfo
//	                    ─► may one hang, or does it? refused, untouched
//	                    ─► room there: one reader at a time until it has answered
//	        helper (a thread of its own, or a process)
//	                    open O_PATH, no symbolic link followed unasked
//	                    ─► fstat: regular? owner? size? the file meant?
//	                    ─► fstatfs, where mountinfo knew nothing
//	                    ─► open O_RDONLY|O_NONBLOCK ─► callback
//	caller ◄──result── or, after Limit, *procfs.TimeoutError
//
// # Invariants
//
//  1. The caller waits for no file: everything that names or touches one, opening
//     and statfs included, happens on a helper of an own procfs.Readers. After
//     Limit the helper is written off and the call ends.
//  2. What is remote is decided by the device that a file is mapped from and by the
//     mounts on the way to its name, as mountinfo of the process's own namespace
//     has them; the file system itself is asked only where that knows nothing. A
//     symbolic link is followed when it is known where it leads.
//  3. A late result is dropped, and a callback that is late can read no further.
//  4. Nothing but a regular file is opened: what it is, is asked of an O_PATH
//     descriptor, which opens no FIFO's other end and no device.
//  5. A path resolved below a Root does not leave it, whatever links lie there.
//  6. With Options.Command no thread of this process touches a file, but on local
//     file systems where no process can be started. What hangs is the process that
//     does; it is killed, and counts as hanging until it is dead.
//  7. A hang costs the device, not a helper: no other file of it is touched while a
//     reader of this run hangs there, or one of another run (slots_linux.go) where the
//     device may hang; and files of other devices have all Helpers. One reader at a
//     time is on a device that has not answered, or that may hang; elsewhere one less
//     than Helpers.
//  8. With four readers hanging, of all runs on this machine, none goes where it may
//     hang, or where one of the four does. At most Helpers and four hang in one Files;
//     then calls fail at once with procfs.ErrExhausted, until one comes loose.
package foreign
