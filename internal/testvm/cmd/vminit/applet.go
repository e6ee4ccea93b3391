package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// builtCommand is where the host has put the stackshot command.
const builtCommand = "/lib/stackshot"

// applet is what tests start besides themselves; the guest has no other
// programs. It returns the exit code.
func applet(name string, args []string) int {
	var err error
	switch name {
	case "true":
	case "sleep":
		err = sleep(args)
	case "go":
		err = handOut(args)
	default:
		err = fmt.Errorf("no such program in a test guest")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

func sleep(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one number of seconds, got %q", args)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSuffix(args[0], "s"), 64)
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	return nil
}

// handOut is "go build ... -o FILE .": the command was built on the host, from
// the same tree.
func handOut(args []string) error {
	for i := range args[:max(len(args)-1, 0)] {
		if args[0] == "build" && args[i] == "-o" && args[len(args)-1] == "." {
			b, err := os.ReadFile(builtCommand)
			if err != nil {
				return err
			}
			return os.WriteFile(args[i+1], b, 0o755)
		}
	}
	return fmt.Errorf("a test guest has no Go: only go build -o FILE . is known, not %q", args)
}
