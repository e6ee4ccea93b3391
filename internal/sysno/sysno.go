// Package sysno names Linux system calls by number, on any operating system:
// a file taken on one machine is read on another.
//
// The tables are made from the SYS_ constants of golang.org/x/sys/unix:
//
//	go generate ./internal/sysno
package sysno

import "strconv"

//go:generate go run gen.go

// x32Bit marks a call of the x32 ABI on amd64; the number below it is, for the
// calls that have no x32 form of their own, the ordinary one.
const x32Bit = 0x40000000

// Name returns the name of system call nr on a machine (as in uname -m).
// Calls made through another ABI of the same machine, as 32-bit programs do,
// have their own numbers: the recorded number does not say which, so for those
// the name is wrong. ok is false for an unknown machine or number.
func Name(machine string, nr int64) (name string, ok bool) {
	table := tableOf(machine)
	if machine == "x86_64" && nr >= 0 {
		nr &^= x32Bit
	}
	if nr < 0 || nr >= int64(len(table)) || table[nr] == "" {
		return "", false
	}
	return table[nr], true
}

// Format returns the name, or "syscall N" where there is none. It is never
// empty.
func Format(machine string, nr int64) string {
	if name, ok := Name(machine, nr); ok {
		return name
	}
	return "syscall " + strconv.FormatInt(nr, 10)
}

func tableOf(machine string) []string {
	switch machine {
	case "x86_64", "amd64":
		return amd64Names[:]
	case "aarch64", "arm64":
		return arm64Names[:]
	}
	return nil
}
