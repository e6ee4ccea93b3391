// Package procfs reads /proc. It needs no BPF. It is what the engine of last resort
// reads from, the source of what is added to tasks after the release (names, paths), and
// the oracle that the other engines are tested against.
//
// Parsing and reading are separate. A ParseX function takes the bytes of one file
// and uses no file system; it never panics, and its errors wrap ErrSyntax. An
// FS reads files, and parses some of them.
//
// # Reading without hanging
//
// On a hung machine a read of /proc can hang too: cmdline, for example, takes the
// mmap_lock that the stuck process holds. Nothing can cancel such a read. A Readers pool
// does each read on a helper, a goroutine locked to its own OS thread, under a time limit.
// If the read takes longer, the helper is written off: the pool leaves its thread in the
// kernel, and the caller goes on.
//
//	idle ──take──► reading ──ended in time──► idle
//	                  │
//	                  └──limit──► written off ──the read ends at last──► idle
//	                               (result dropped)
//
// A thread stuck in the kernel keeps the process from ending until it comes
// loose. User space cannot change that, so the number of such threads is bounded.
//
// # Invariants
//
//  1. Helpers reading + helpers written off ≤ max, at every moment. A call that
//     finds no room waits; its wait ends, since each read ends or is written off.
//  2. With max written off, every call fails with ErrExhausted at once.
//  3. A written-off helper never touches memory of its caller: it reads into its
//     own buffer, and the caller copies from there before the helper is used again.
//  4. A helper that comes loose no longer counts as written off.
//  5. Close does not wait.
//  6. /proc/PID/environ is never read; asking for it is ErrForbidden.
package procfs
