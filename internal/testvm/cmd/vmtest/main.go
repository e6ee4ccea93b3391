// Command vmtest runs this project's tests in guests; see package testvm.
//
//	vmtest [flags] -- PACKAGE [go test flags]   one package on one kernel
//	vmtest matrix [-quick] PACKAGE...           packages on all machines; a table
//	vmtest table FILE...                        what matrix -save wrote, merged
//	vmtest kernels [-update]                    fetch the kernels
//
// Example:
//
//	go run ./internal/testvm/cmd/vmtest -kernel 6.12 -smp 2 -- ./snapshot -run TestX
//
// Its exit code is the test's, or 1 when the guest gave none, or 2 when there
// was no guest.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	command, args := test, os.Args[1:]
	if len(args) > 0 {
		switch args[0] {
		case "kernels":
			command, args = kernels, args[1:]
		case "matrix":
			command, args = matrix, args[1:]
		case "seal":
			command, args = seal, args[1:]
		case "table":
			command, args = table, args[1:]
		}
	}
	code, err := command(ctx, args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vmtest:", err)
		if code == 0 {
			code = 2
		}
	}
	os.Exit(code)
}

// newFlags exits with 2 and the usage on a flag that it does not know.
func newFlags(name string) *flag.FlagSet { return flag.NewFlagSet(name, flag.ExitOnError) }
