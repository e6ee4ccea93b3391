package main

import (
	"cmp"
	"os"
	"strings"

	"stackshot/internal/screen"
	"stackshot/internal/show"
)

// programWords are the words by which the user starts this program again.
func programWords() string { return programFor(os.Args[0], os.Geteuid(), os.Getenv("SUDO_UID")) }

// programFor is programWords by what it depends on. A program that was started by its path need not be in
// anybody's PATH, and is seldom where sudo looks (secure_path). Who called sudo may be able to read
// the file without it, but not the file of a capture, and it does no harm.
func programFor(arg0 string, euid int, sudoUID string) string {
	s := "stackshot"
	if strings.Contains(arg0, "/") && show.Clean(arg0) == arg0 {
		s = screen.Word(arg0)
	}
	if euid == 0 && cmp.Or(sudoUID, "0") != "0" {
		s = "sudo " + s
	}
	return s
}
