// Command vminit is the first process of a test guest: it mounts what tests
// need, runs one program as root, sends its output, files and exit code over
// the wire, and powers the guest off. It is built static and knows no more than
// its job; see package testvm.
//
// Under other names it is the few programs that tests start: sleep, true, and
// a go that can only hand out the stackshot command that the host has built.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func main() {
	if name := filepath.Base(os.Args[0]); name != "init" {
		os.Exit(applet(name, os.Args[1:]))
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "vminit is for the first process of a test guest")
		os.Exit(2)
	}
	// Whatever happens the guest ends; its console says why.
	defer func() {
		if p := recover(); p != nil {
			fmt.Println("vminit: panic:", p)
		}
		unix.Sync()
		unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	}()
	if err := mountAll(); err != nil {
		fmt.Println("vminit:", err)
	}
	if err := serve(); err != nil {
		fmt.Println("vminit:", err)
	}
}
