// Package spawn starts the processes that help this one, in time or not at all, and talks
// with them. They read program files (internal/foreign) and write the snapshot
// (internal/publish). Such files may hang, so any helper may have to be given up.
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
// not answer. Package os waits for exec without a limit. To leave that to another
// goroutine does not help: its thread keeps its P (rawVforkSyscall), so that the next
// garbage collection waits for ever too, and with one CPU everything does.
//
// # Invariants
//
//  1. Start ends within its limit, or with its context, whatever the child does.
//  2. A child shares this process's memory until it executes, and neither writes to
//     memory nor uses a stack: it makes the system calls of a table, in assembly. So
//     the caller goes on at once, nothing is copied, and no page of ours becomes
//     write-protected as by fork, which would fault in a window.
//  3. If the child was given up, what the table refers to is kept for good.
//  4. One start is under way at a time. After a start that did not end in time, others
//     fail at once, for heldFor.
//  5. A helper that nobody waits for does nothing: the socket for its requests has ended.
//  6. An answer belongs to the last request: after an answer that did not come in time, or
//     could not be read, the child is asked nothing more.
package spawn
