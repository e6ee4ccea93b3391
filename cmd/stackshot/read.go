package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// maxPlain bounds what a file may unpack to, so that a small one cannot take
// all memory.
const maxPlain = 1 << 30

// What a file makes a command hold is in proportion to its size on the disk: of
// kcdata.Memory and what is here, 512 MiB for a file of 64 KiB.
const (
	baseHeap      = 320 << 20 // from where on garbage is collected at once
	heapPerByte   = 1 << 10   // beyond that, for each byte of the file
	baseOutput    = 64 << 20  // bytes of a report or a dump
	outputPerByte = 1 << 10
)

func maxOutput(packed int64) int64 { return baseOutput + outputPerByte*packed }

// contents is what could be read of a file.
type contents struct {
	name   string
	plain  []byte
	packed int64 // its size
	cut    error // what is missing at its end; nil: nothing that was seen yet
}

// readFile reads and unpacks a file; "-" is standard input. Of one that was cut, or
// unpacks to too much, it gives what there is. An error names the file: there is
// nothing.
func readFile(name string) (*contents, error) {
	data, err := readAll(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, show.WithoutPath(err))
	}
	boundHeap(len(data))
	plain, _, err := kcdata.Unwrap(data, maxPlain)
	if plain == nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &contents{name, plain, int64(len(data)), err}, nil
}

// boundHeap lets the garbage of a small file not pass for its content. Who sets
// GOMEMLIMIT knows better.
func boundHeap(packed int) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(baseHeap + heapPerByte*int64(packed))
	}
}

// snapshot decodes c. Of one that breaks off it gives what came before, with the
// reason; nil where that is nothing.
func (c *contents) snapshot() (*kcdata.Snapshot, error) {
	s, err := kcdata.ParseSnapshotWithin(c.plain, kcdata.Memory(c.packed))
	switch {
	case nothingRead(err):
		s = nil
	case err == nil && c.cut != nil:
		s.Problems = append(s.Problems, fmt.Sprintf("the file breaks off: %v", c.cut))
	}
	return s, c.reason(err)
}

// reason is why c is not whole: a stream that was cut ends inside an item, too.
func (c *contents) reason(err error) error {
	if c.cut != nil && (err == nil || errors.Is(err, kcdata.ErrTruncated)) {
		err = c.cut
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

// nothingRead reports whether a buffer broke off before its first item's end.
func nothingRead(err error) bool {
	const beginMarker = 16
	var broken *kcdata.FormatError
	return errors.As(err, &broken) && broken.Offset <= beginMarker
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
	b, err := readKnown(io.LimitReader(in, maxPlain+1))
	switch {
	case errors.Is(err, kcdata.ErrBadMagic):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("read at offset %#x: %w", len(b), show.WithoutPath(err))
	}
	if len(b) == 0 {
		return nil, fmt.Errorf("offset 0x0: %w: the file is empty", kcdata.ErrTruncated)
	}
	return b, nil
}

// readKnown reads r to its end if it begins as one of the envelopes do: what is none
// may be a disk, or have no end. With an error it gives what came before.
func readKnown(r io.Reader) ([]byte, error) {
	magic := make([]byte, 4)
	n, err := io.ReadFull(r, magic)
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return magic[:n], nil
	case err != nil:
		return magic[:n], err
	}
	if _, _, err := kcdata.Unwrap(magic, maxPlain); errors.Is(err, kcdata.ErrBadMagic) {
		return magic, err
	}
	return io.ReadAll(io.MultiReader(bytes.NewReader(magic), r))
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
			return dump(os.Stdout, args[0])
		},
	}
	cmd.Flags().BoolVar(&trace, "trace", false, "show the snapshotter's own last events instead (take --trace keeps them)")
	return cmd
}

// dump writes the text form of a file. Of one that breaks off it shows what there
// is.
func dump(w io.Writer, name string) error {
	done := progress(false, "reading "+name)
	c, err := readFile(name)
	done()
	if err != nil {
		return err
	}
	err = kcdata.Text(w, c.plain, maxOutput(c.packed))
	broken := c.reason(err)
	var format *kcdata.FormatError
	switch {
	case broken == nil:
		return nil
	case err == nil || errors.Is(err, kcdata.ErrTooLarge) || errors.As(err, &format) && !nothingRead(err):
		return &incompleteError{broken}
	}
	return broken
}
