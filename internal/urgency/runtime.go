package urgency

import _ "unsafe" // for go:linkname

// enterSyscallBlock gives this thread's P to others. Until exitSyscall the thread must not
// use what needs one (doc.go).
//
//go:linkname enterSyscallBlock runtime.entersyscallblock
func enterSyscallBlock()

//go:linkname exitSyscall runtime.exitsyscall
func exitSyscall()

// beforeExec waits until the Go runtime makes no thread, and keeps it from making one until afterExec.
// Between them this goroutine holds a lock of the runtime: it must not park or allocate.
//
//go:linkname beforeExec syscall.runtime_BeforeExec
func beforeExec()

//go:linkname afterExec syscall.runtime_AfterExec
func afterExec()
