// Package collate makes the file of a raw capture. It needs no session and no engine:
// another process may have made the capture.
//
//	collect  each task is decoded and completed: kernel addresses, samples, what /proc and
//	         the mapped files say (enrich, load information), user stacks
//	settle   what waits for the last task: files that were late are asked once more, and
//	         samples without a thread are named; owners of futexes are found out of the bytes
//	         around these
//	write    a section on the machine, the tasks in census order, a section on the capture
//
// Collation trusts the bytes of the capture no more than those of a file. It changes them
// where they lie, so a capture can be collated only once.
package collate
