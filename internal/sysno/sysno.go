// Package sysno names Linux system calls by number. It has the tables of all supported
// machines, because a file that was taken on one machine may be read on another.
//
// The tables are made from the SYS_ constants of golang.org/x/sys/unix:
//
//	go generate ./internal/sysno
package sysno

import "strconv"

//go:generate go run gen.go

// x32Bit marks a call of the x32 ABI on amd64. The lower bits are the ordinary number, except
// for calls that have an x32 form of their own.
const x32Bit = 0x40000000

// ABI is the calling convention of a system call. Each has its own numbers.
type ABI uint8

const (
	Native  ABI = iota // the machine's own
	Compat             // that of 32-bit programs: i386 on amd64, arm on arm64
	Unknown            // one of the two: no number has a name
)

// Name returns the name of system call nr on a machine (as in uname -m). ok is
// false for an unknown machine, ABI or number.
func Name(machine string, abi ABI, nr int64) (name string, ok bool) {
	if abi >= Unknown {
		return "", false
	}
	if machine == "x86_64" && abi == Native && nr >= 0 {
		nr &^= x32Bit
	}
	table := tables[machine][abi]
	if nr < 0 || nr >= int64(len(table)) || table[nr] == "" {
		return "", false
	}
	return table[nr], true
}

// Format returns the name, or "syscall N" if there is none. It is never empty.
func Format(machine string, abi ABI, nr int64) string {
	if name, ok := Name(machine, abi, nr); ok {
		return name
	}
	return "syscall " + strconv.FormatInt(nr, 10)
}

// tables are the names by machine, as uname -m or Go calls it, and by ABI.
var tables = map[string][Unknown][]string{
	"x86_64":  {amd64Names[:], i386Names[:]},
	"amd64":   {amd64Names[:], i386Names[:]},
	"aarch64": {arm64Names[:], armNames[:]},
	"arm64":   {arm64Names[:], armNames[:]},
}
