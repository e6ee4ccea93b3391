// Package collate makes the file of a raw capture. It needs no session and no engine: the
// capture may be of another process.
//
//	collect  each task is decoded, and completed: kernel addresses, samples, what /proc
//	         and the files behind it know (enrich, load information), user stacks
//	settle   what only all tasks together tell: files that were late are asked once more,
//	         samples without a thread are named
//	write    a section on the machine, the tasks in census order, a section on the capture
//
// The bytes of the capture are read with the distrust of any file, and changed where they
// lie: they are good for one collation.
package collate
