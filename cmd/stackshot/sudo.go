package main

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"syscall"

	"stackshot/internal/screen"
	"stackshot/internal/show"
)

// programWords are the words by which the user can start this program to read a file; readable: the user can
// read it without sudo, which is true of no file of a capture.
func programWords(readable bool) string {
	return programFor(os.Args[0], os.Geteuid(), os.Getenv("SUDO_UID"), readable)
}

// programFor is programWords by what it depends on. A program that was started by its path need not be in
// anybody's PATH, and is seldom where sudo looks (secure_path).
func programFor(arg0 string, euid int, sudoUID string, readable bool) string {
	s := "stackshot"
	if strings.Contains(arg0, "/") && show.Clean(arg0) == arg0 {
		s = screen.Word(arg0)
	}
	if euid == 0 && cmp.Or(sudoUID, "0") != "0" && !readable {
		s = "sudo " + s
	}
	return s
}

// readableWithoutSudo reports whether the mode of a file lets the user read it that called sudo. One of
// a group of the user's other than the first gets a sudo that does no harm.
func readableWithoutSudo(name string) bool {
	st, err := os.Stat(name)
	if err != nil {
		return false
	}
	of := st.Sys().(*syscall.Stat_t)
	is := func(id uint32, name string) bool { return strconv.FormatUint(uint64(id), 10) == os.Getenv(name) }
	read := os.FileMode(0o004)
	switch {
	case is(of.Uid, "SUDO_UID"):
		read = 0o400
	case is(of.Gid, "SUDO_GID"):
		read = 0o040
	}
	return st.Mode()&read != 0
}
