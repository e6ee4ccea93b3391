// Package publish brings a snapshot to its target, a file or standard output, or to memory if
// the target cannot be written.
//
//	Spool ──► Destination.Save ──► process of Writer.Command: Serve
//	memory         │                 open its directory, look at the name,
//	file           │                 write, fsync, give it its name, fsync the directory
//	               │◄── what became of it, or nothing within Timeout
//	               └─ no file? /dev/shm, then the directory of temporary files
//
// # Invariants
//
//  1. No thread of this process opens, looks at or writes a target: a helper process
//     does, under a time limit. A thread stuck in a file system would outlive even
//     SIGKILL, and nobody could wait for the process. If no helper begins in time
//     (internal/spawn), a thread writes instead, but only if mountinfo says that no file
//     system on the way may hang.
//  2. A snapshot that was taken is not lost: if the target cannot be written, or a signal ends
//     the wait for it, the snapshot goes to memory (/dev/shm), and the error says so.
//  3. Under its name a file is whole or absent.
//  4. The caller learns what really became of the file: if it got its name, it counts as
//     written, even if the interrupt came first.
//  5. Nobody can guess a name that the writing needs, and no symbolic link is followed.
package publish
