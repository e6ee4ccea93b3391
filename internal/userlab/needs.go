//go:build linux

package userlab

import (
	"os"
	"os/exec"
)

// Packages are the names, in Debian 12, of what the lab needs beside Go. gcc
// alone makes the 32-bit program, so gcc-multilib is not among them. Debian's
// busybox-static is of glibc: what is of musl here is built by musl-gcc.
var Packages = []string{
	"gdb", "gcc", "g++", "libc6-dev", "rustc", "musl-tools", "busybox-static",
	"python3", "nodejs", "openjdk-17-jdk-headless",
}

// requireAll says whether a missing program is a failure.
func requireAll() bool { return os.Getenv("STACKSHOT_REQUIRE_BPF") == "1" }

// missing gives those programs that are not installed.
func missing(programs []string) []string {
	var not []string
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			not = append(not, p)
		}
	}
	return not
}
