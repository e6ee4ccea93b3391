// Package symbol names the addresses of user stacks.
//
//	Task's stacks ─► wanted addresses ─► one job per file ─► File ─► names ─► Result
//	                                       │  at most 4 at once      ▲
//	                                       └─ Files.LoadFrom: helper ┘
//
// The files in the order of the data: resolver, wanted (what is asked for),
// source (reading a mapping's file), job, debugfile and debuginfod (split debug
// files), known (what is kept); below them file (one ELF file), elf, table,
// debuglink, minidebug, pclntab, section, lines and inline (DWARF), perfmap, demangle.
//
// # What names an address
//
// The symbol whose extent holds it, of .symtab and .dynsym, of .gnu_debugdata, of a
// split debug file, or of Go's pclntab; in anonymous memory the perf map. An address in
// a gap between sized symbols has no name: never the nearest one before it. A symbol
// without a size, as assembly has them, reaches to the next one or to its section's end
// where the file has all its symbols; where it has only those for linking it names no
// more than its first instruction. Of several names at one address people read the
// plain one best: functions before others, global before local, fewest leading
// underscores, shortest.
//
// C++ and Rust are demangled without parameters, return types and hash, with
// template arguments: a stack is about which function, and gdb's backtrace
// likewise shows values there, not types. Versions (@@GLIBC_2.34) go. Suffixes
// of C functions (.constprop.0) stay. Go's names are as they are.
//
// # Whose file it is
//
// A name is given only if the file is the one that was mapped: package image says
// what that means, where the file is looked for, and how long what hung is left
// alone. Else the address has its module and the Result says why it has no name.
//
// # What it may cost
//
// Files belong to other people and may hang, lie or be huge. They are read only
// inside Files.LoadFrom; a call ends at its limit whatever hangs, with the rest
// listed as skipped; every table has a cap; the cache has a bound in bytes. No
// bytes make it panic. Nothing is asked of the network unless a server is named.
package symbol
