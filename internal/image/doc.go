// Package image opens the files that are mapped into processes, executables and
// libraries, and keeps what was made of them: build-ids, symbols, unwind tables.
//
// A mapping says which file was mapped, not where it is now: the name may stand
// for another file, for the process's own view of the file system, or for
// nothing any more. So places are tried in turn, and the first that holds the
// very file is taken:
//
//	/proc/PID/root/PATH             what the process calls so
//	/proc/PID/map_files/START-END   the mapping's file itself, name or no name; it
//	                                takes mmap_lock, so not where that was held
//	/proc/PID/exe                   where the mapping has no whole path
//	PATH                            here: for a process that ended, or another machine's
//
// # Whose file it is
//
// The first three count only while the process is the one that was captured: by
// its start time, asked again when the file is open; a caller that has just seen
// it gives its number alone. The file must have the mapping's build-id. Without
// one its device and inode must be the mapping's (through map_files the inode:
// some file systems give stat another device) and, where no process vouches for
// it, it must not have changed since the process began; then a file of another
// machine is never known again. What is known of a file is kept by build-id,
// device and inode together: by the build-id alone anybody's file could name the
// frames of another's.
//
// # What it may cost
//
// All files are read through internal/foreign: none is waited for, and it takes care
// of devices. The cache leaves a file alone for a while if it was late. It has one
// bound in bytes for everything that is made of files.
//
// The files: process, place (where, and whether it is the one), cache and store
// (what is kept), hung, vdso.
package image
