package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// maxPlain bounds what a file may unpack to, so that a small one cannot take
// all memory.
const maxPlain = 1 << 30

// readFile reads and unpacks a snapshot; "-" is standard input.
func readFile(name string) ([]byte, error) {
	data, err := readAll(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, show.WithoutPath(err))
	}
	plain, _, err := kcdata.Unwrap(data, maxPlain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return plain, nil
}

func readAll(name string) ([]byte, error) {
	in := os.Stdin
	if name != stdoutName {
		var err error
		if in, err = os.Open(name); err != nil {
			return nil, err
		}
		defer in.Close()
	}
	b, err := io.ReadAll(io.LimitReader(in, maxPlain+1))
	if err != nil {
		return nil, fmt.Errorf("read at offset %#x: %w", len(b), show.WithoutPath(err))
	}
	if len(b) == 0 {
		return nil, fmt.Errorf("offset 0x0: %w: the file is empty", kcdata.ErrTruncated)
	}
	return b, nil
}

func dumpCommand() *cobra.Command {
	trace := false
	cmd := &cobra.Command{
		Use:   "dump FILE",
		Short: "Show every item of a snapshot, or of any KCData file (- for standard input)",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if trace {
				return showTrace(os.Stdout, args[0])
			}
			done := progress(false, "reading "+args[0])
			plain, err := readFile(args[0])
			done()
			if err != nil {
				return err
			}
			if err := kcdata.Text(os.Stdout, plain); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&trace, "trace", false, "show the snapshotter's own last events instead (take --trace keeps them)")
	return cmd
}
