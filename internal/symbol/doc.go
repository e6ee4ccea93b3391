// Package symbol names the addresses of user stacks.
//
//	Task's stacks ─► wanted addresses ─► one job per file ─► File ─► names ─► Result
//	                                       │  at most 4 at once      ▲
//	                                       └─ Files.LoadFrom: helper ┘
//
// The source files in the order of the data: resolver (calls and results), wanted (the
// addresses to name), job, source (reads a mapping's file), debugfile and debuginfod
// (split debug files), known (what the cache keeps); below them file (one ELF file),
// table, pclntab, section, lines and inline (DWARF), perfmap.
//
// # What names an address
//
// The symbol whose extent holds the address: of .symtab and .dynsym, of .gnu_debugdata,
// of a split debug file, or of Go's pclntab. In anonymous memory the perf map names it.
// An address in a gap between sized symbols has no name; the nearest symbol before it
// does not count. Assembly has symbols without a size. Such a symbol reaches to the next
// one, or to the end of its section, if the file has all its symbols; if the file has
// only the symbols for linking, it names only its first instruction. Of several names at
// one address the plainest wins: functions before others, global before local, fewest
// leading underscores, shortest.
//
// C++ and Rust are demangled without parameters, return types and hash, with
// template arguments: a reader of a stack wants to know which function it is, and
// gdb's backtrace shows values there too, not types. Versions (@@GLIBC_2.34) are cut.
// Suffixes of C functions (.constprop.0) and Go's names stay as they are.
//
// # Whose file it is
//
// A file names an address only if it is the file that was mapped. Package image says
// how it knows that, where it looks for the file, and for how long it leaves a file
// alone that hung. Otherwise the address has only its module, and the Result says why.
//
// # What it may cost
//
// Files belong to other people and may hang, lie or be huge. The package reads them
// only inside Files.LoadFrom. A call ends at its time limit whatever hangs, and lists
// the rest as skipped. Every table has a limit, and the cache has a bound in bytes. No
// file content makes the package panic. It uses the network only if a server is named.
package symbol
