// Package waits says of each thread of a snapshot what it waits for, and who could end the
// wait. It is pure: it reads the decoded snapshot alone.
//
//	records of the window (LinuxWait, LinuxFutex)  ─┐
//	state, system call, kernel stack by name       ─┼─► Wait, one for each thread that waits
//	user stack by name                             ─┘
//
// Nothing is guessed. A kernel stack that no row of the table knows is of kind Other. An owner
// is named only if the file has that thread with the start time that was recorded with it.
package waits
