// Package futex says what the bytes around a futex word are, and which thread they name as
// the owner. It is pure: bytes and a table of the capture's threads in, fields of
// kcdata.LinuxFutex out.
//
//	read    a LinuxFutex ─► Readings: the layouts that its bytes may be of (glibc.go, musl.go)
//	table   the threads of the capture: numbers in each pid namespace, dead or not
//	owner   a Reading and the table ─► the owner, or why there is none
//
// A wrong owner accuses an innocent thread, so a layout counts only if every field around
// the word is what the library writes there, and the call one that it makes, and a number only if it is that of one living
// thread that can have written it. Whatever is left open stays open and is said: FutexAmbiguous,
// FutexOwnerGone, FutexOwnerUnsure.
//
// The layouts are those of 64-bit little-endian programs; amd64 and arm64 have the same. They were
// compared with the sources of glibc 2.31, 2.34, 2.36 and 2.42 (sysdeps/nptl/bits/struct_mutex.h,
// sysdeps/{x86,aarch64}/nptl/bits/struct_rwlock.h, nptl/descr.h) and of musl 1.2.0 to 1.2.5
// (src/internal/pthread_impl.h). Of a 32-bit call only the word of a PI futex is read: that is the
// kernel's own layout. From 2.43 on glibc's pthread_join waits for a word that does not name
// the thread ("nptl: Do not use pthread set_tid_address as state synchronization"): that is no
// object here.
package futex
