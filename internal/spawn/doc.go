// Package spawn starts the processes that help this one, in time or not at all, and talks
// with them. They touch files that may hang, so any of them may have to be given up: one
// reads program files (internal/foreign), one writes the snapshot.
//
//	Start ──clone──► child: table of system calls ──execve──► helper: Serve
//	  │◄─────────────────────── one byte within the limit ──────┘
//	  ├─ or: killed, and nothing else is started for a while
//	Ask ───────────── a request, one line of JSON ─────────────► do
//	  │◄───────────── an answer, one line of JSON ──────────────┘
//	  ├─ or: Conn's deadline; the child is killed, and nobody waits for it
//	End ───────────── end of the socket ───────────────────────► Serve returns
//
// A child may be stopped between clone and exec: its control group is frozen or out
// of memory, somebody sends SIGSTOP or traces it, its program lies on a disk that does
// not answer. Package os waits for exec without a limit, and in a way that no
// goroutine can be left behind with: its thread keeps its P (rawVforkSyscall), so that
// the next garbage collection waits for ever too, and on one CPU everything does.
//
// # Invariants
//
//  1. Start ends within its limit, or with its context, whatever the child does.
//  2. A child shares this process's memory until it executes, and neither writes to
//     memory nor uses a stack: it makes the system calls of a table, in assembly. So
//     the caller goes on at once, nothing is copied, and no page of ours becomes
//     write-protected as by fork, which would fault in a window.
//  3. What the table refers to is kept for good if the child was given up.
//  4. One start is under way at a time. After one that did not end in time the others
//     fail at once, for heldFor.
//  5. A helper that nobody waits for does nothing: its requests come by a socket that
//     has ended.
//  6. An answer belongs to the last request: after one that did not come in time, or was
//     none, the child is asked nothing more.
package spawn
