// Package waits says of each thread of a snapshot what it waits for, and who could end the
// wait. It is pure: it reads the decoded snapshot alone.
//
//	records of the window (LinuxWait, LinuxFutex)    ─┐
//	state, system call, kernel stack by name         ─┤
//	user stack by name                               ─┼─► Wait, one for each thread that waits
//	open files of its call (LinuxFile, LinuxSocket)  ─┤
//	read after the release: ends, locks, mounts      ─┘
//
// The sources come in the order of their worth: vfork, frozen, a lock of the kernel, a futex, and
// then the kernel stack, whose kind an open file refines if it fits (files.go):
//
//	ends.go, side.go   who has which part of the ends of an object: found out once for each object
//	stream.go          owners out of a side: others, the waiter's own process, nobody
//	pipe.go, socket.go, event.go, filelock.go, serve.go, place.go
//	                   what each kind of file has at its other end
//	asks.go            which side of a connection asked, and so who owes
//	set.go             poll, select, epoll: any of a set
//
// Nothing is guessed. A kernel stack that no row of the table knows is of kind Other. An owner
// is named only if the file has that thread with the start time that was recorded with it.
//
// What was read after the release counts only if its thread had not run since the window. Of a
// file's other end the owner is a process, since any of its threads may act; it owes something only
// if something is known to lie with it. Who waits for the next request has no owners.
package waits
