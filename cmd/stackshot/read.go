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

// How much memory a command holds for a file is in proportion to the file's size on the disk.
// kcdata.Memory and these figures make it 512 MiB for a file of 64 KiB.
const (
	baseHeap      = 320 << 20 // beyond it garbage is collected at once
	heapPerByte   = 1 << 10   // added to it for each byte of the file
	baseOutput    = 64 << 20  // bytes of a report or a dump
	outputPerByte = 1 << 10
)

func maxOutput(packed int64) int64 { return baseOutput + outputPerByte*packed }

// contents is what could be read of a file.
type contents struct {
	name     string
	plain    []byte
	envelope kcdata.Envelope
	packed   int64 // size of the file, bytes
	cut      error // what is missing at its end; nil: nothing that was seen yet
}

// readFile reads and unpacks a file; "-" is standard input. If the file was cut, or unpacks
// to too much, readFile gives what there is. After an error, which names the file, there is
// nothing.
func readFile(name string) (*contents, error) {
	data, err := readAll(name)
	if err != nil {
		return nil, err
	}
	return unpack(name, data)
}

func unpack(name string, data []byte) (*contents, error) {
	boundHeap(len(data))
	plain, envelope, err := kcdata.Unwrap(data, maxPlain)
	if plain == nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &contents{name, plain, envelope, int64(len(data)), err}, nil
}

// readSnapshot reads and decodes a file, and shows on a terminal that it does. If the file
// breaks off, it gives what came before (nil: nothing) and an error that names the file.
// packed is the file's size in bytes.
func readSnapshot(name string) (s *kcdata.Snapshot, packed int64, err error) {
	defer progress(false, "reading "+name)()
	c, err := readFile(name)
	if err != nil {
		return nil, 0, err
	}
	s, err = c.snapshot()
	return s, c.packed, err
}

// readWhole reads and decodes a file whole or not at all: figures over part of a machine
// would be wrong.
func readWhole(name string) (*kcdata.Snapshot, error) {
	s, _, err := readSnapshot(name)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// boundHeap has the garbage of a small file collected early, so that it does not add up to
// more than the content. Far from that bound it is collected seldom, since nearly all that a
// command makes of a file lives until the command ends. Whoever sets GOMEMLIMIT or GOGC knows better.
func boundHeap(packed int) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(baseHeap + heapPerByte*int64(packed))
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(seldom)
		}
	}
	hugeHeap(min(hugePerByte*int64(packed), baseHeap))
}

// seldom is a GOGC: garbage is collected when the heap has become five times what lived.
const seldom = 400

// hugePerByte is the heap of a report, bytes for each of a large file: about 100 were measured.
const hugePerByte = 128

// snapshot decodes c. If c breaks off, it gives what came before (nil: nothing) and the
// reason.
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

// reason says why c is not whole. If the stream was cut, that is the reason, although an item
// breaks off too.
func (c *contents) reason(err error) error {
	if c.cut != nil && (err == nil || errors.Is(err, kcdata.ErrTruncated)) {
		err = c.cut
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

// nothingRead reports whether a buffer broke off before the end of its first item.
func nothingRead(err error) bool {
	const beginMarker = 16
	var broken *kcdata.FormatError
	return errors.As(err, &broken) && broken.Offset <= beginMarker
}

// readAll reads a file that may hold a snapshot. Its errors name the file.
func readAll(name string) ([]byte, error) {
	in := os.Stdin
	if name != stdoutName {
		var err error
		if in, err = os.Open(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, show.WithoutPath(err))
		}
		defer in.Close()
	}
	b, err := readKnown(io.LimitReader(in, maxPlain+1))
	switch {
	case errors.Is(err, kcdata.ErrBadMagic):
		return nil, fmt.Errorf("%s: %w", name, err)
	case err != nil:
		return nil, fmt.Errorf("%s: read at offset %#x: %w", name, len(b), show.WithoutPath(err))
	case len(b) == 0:
		return nil, fmt.Errorf("%s: offset 0x0: %w: the file is empty", name, kcdata.ErrTruncated)
	}
	return b, nil
}

// readKnown reads r to its end if r begins as one of the envelopes does. Anything else may
// be a disk, or have no end. With an error readKnown gives what it has read.
func readKnown(r io.Reader) ([]byte, error) {
	magic := make([]byte, 4)
	n, err := io.ReadFull(r, magic)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return magic[:n], nil
	} else if err != nil {
		return magic[:n], err
	}
	if _, _, err := kcdata.Unwrap(magic, maxPlain); errors.Is(err, kcdata.ErrBadMagic) {
		return magic, err
	}
	return io.ReadAll(io.MultiReader(bytes.NewReader(magic), r))
}

func dumpCommand() *cobra.Command {
	trace, paging := false, paging{}
	cmd := &cobra.Command{
		Use:   "dump FILE",
		Short: "Show every item of a file",
		Long: "Shows every item of a snapshot, or of any KCData file (- for standard input), as it stands there,\n" +
			"also of a file that breaks off.",
		Example: "  stackshot dump FILE\n  stackshot dump --trace FILE",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			show := dump
			if trace {
				show = showTrace
			}
			return paging.run(os.Stdout, func(out io.Writer) error { return show(out, args[0]) })
		},
	}
	paging.flag(cmd)
	cmd.Flags().BoolVar(&trace, "trace", false, "show stackshot's own last events instead (take --trace keeps them)")
	return cmd
}

// dump writes the text form of a file. If the file breaks off, it writes what there is.
func dump(w io.Writer, name string) error {
	done := progress(false, "reading "+name)
	c, err := readFile(name)
	done()
	if err != nil {
		return err
	}
	err = unlessGone(kcdata.Text(w, c.plain, maxOutput(c.packed)))
	broken := c.reason(err)
	var format *kcdata.FormatError
	switch {
	case broken == nil:
		return nil
	case err == nil || errors.Is(err, kcdata.ErrTooLarge) || errors.As(err, &format) && !nothingRead(err):
		return partial(broken)
	}
	return broken
}
