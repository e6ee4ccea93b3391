// Package procfs reads /proc: the picture of the machine that needs no BPF. It
// is the engine of last resort, the source of what is read after the release
// (names, paths), and the oracle the other engines are tested against.
//
// Parsing and reading are apart. A ParseX function takes the bytes of one file
// and knows no file system; it never panics, and its errors are *ParseError. An
// FS reads files, and parses them for convenience.
//
// # Reading without hanging
//
// On a hung machine a read of /proc can hang with it: cmdline takes the very
// mmap_lock that the stuck process holds. Such a read cannot be cancelled, only
// left behind. A Readers pool does each read on a helper, a goroutine locked to
// its own OS thread, under a time limit. A helper whose read takes longer is
// written off: its thread is left to its fate and the caller goes on.
//
//	idle ──take──► reading ──ended in time──► idle
//	                  │
//	                  └──limit──► written off ──the read ends at last──► idle
//	                               (result dropped)
//
// A thread stuck in the kernel keeps the process from ending until it comes
// loose; nothing in user space can change that, which is why there is a bound.
//
// # Invariants
//
//  1. Helpers reading + helpers written off ≤ max, at every moment. A call that
//     finds no room waits; its wait ends, since each read ends or is written off.
//  2. With max written off, every call fails with ErrExhausted at once.
//  3. A written-off helper never touches memory of its caller: it reads into its
//     own buffer, and the caller copies out before the helper may be used again.
//  4. A helper that comes loose counts as written off no longer.
//  5. Close waits for nobody.
//  6. /proc/PID/environ is never read; asking for it is ErrForbidden.
package procfs
