package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"stackshot/internal/screen"
	"stackshot/internal/show"
	"stackshot/internal/vmcore"
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
	kcdata.File
	name string
	cut  error // what is missing at its end; nil: nothing that was seen yet
}

// blockBytes is the unit of stat's count of blocks.
const blockBytes = 512

// readFile reads and unpacks a file to its end marker; "-" is standard input. If the file was cut, or
// unpacks to too much, readFile gives what there is. After an error, which names the file, there is
// nothing.
func readFile(name string) (*contents, error) {
	in, size, onDisk := os.Stdin, int64(0), int64(0) // bytes; 0: not known
	if name != stdoutName {
		var err error
		if in, err = os.Open(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, show.WithoutPath(err))
		}
		defer in.Close()
	}
	st, err := in.Stat()
	switch {
	case err == nil && st.IsDir():
		return nil, fmt.Errorf("%s: is a directory: 'stackshot list %s' shows the snapshots in it", name, screen.Word(name))
	case err == nil && st.Mode().IsRegular():
		at, _ := in.Seek(0, io.SeekCurrent) // of standard input; it fails for none
		size = st.Size() - at
		onDisk = min(size, blockBytes*st.Sys().(*syscall.Stat_t).Blocks) // less: it has holes
	}
	if onDisk > 0 {
		boundHeap(onDisk)
	}
	f, err := kcdata.Read(in, size, maxPlain)
	if _, format := errors.AsType[*kcdata.FormatError](err); err != nil && !format {
		return nil, fmt.Errorf("%s: read at offset %#x: %w", name, f.Size, show.WithoutPath(err))
	}
	switch {
	case f.Plain != nil:
	case name != stdoutName && isDump(name):
		return nil, fmt.Errorf("%s: a dump of a machine's memory: 'stackshot extract %s' looks for a snapshot in it", name, screen.Word(name))
	default:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if onDisk <= 0 {
		boundHeap(f.Size)
	}
	return &contents{f, name, err}, nil
}

// isDump reports whether a file is a dump of a machine's memory.
func isDump(name string) bool {
	core, err := vmcore.Open(name)
	if err != nil {
		return false
	}
	core.Close()
	return true
}

// readSnapshot reads and decodes a file, and shows on a terminal that it does. If the file
// breaks off, it gives what came before (nil: nothing) and an error that names the file.
// packed is the file's size in bytes.
func readSnapshot(name string) (s *kcdata.Snapshot, packed int64, err error) {
	done := progress(false, "reading "+name)
	c, err := readFile(name)
	if err == nil {
		s, err = c.snapshot()
		packed = c.Size
	}
	done()
	c.sayFollows()
	return s, packed, err
}

// sayFollows tells people what follows the end of a file, if it was read and something does.
func (c *contents) sayFollows() {
	if c != nil && c.Follows != "" {
		say(os.Stderr, "%s: %s", c.name, c.Follows)
	}
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
func boundHeap(packed int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(baseHeap + heapPerByte*packed)
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(seldom)
		}
	}
	hugeHeap(min(hugePerByte*packed, baseHeap))
}

// seldom is a GOGC: garbage is collected when the heap has become five times what lived.
const seldom = 400

// hugePerByte is the heap of a report, bytes for each of a large file: about 100 were measured.
const hugePerByte = 128

// stackshot is the stackshot of c, which may be nested in it. If it has none, Plain is nil, and the error
// says why; else the error says where the buffer around it breaks off.
func (c *contents) stackshot() (in kcdata.Inside, broken error) {
	in, broken = kcdata.FindStackshot(c.Plain, c.Size, maxPlain)
	if in.Others > 0 {
		c.Follows = strings.TrimPrefix(c.Follows+fmt.Sprintf("; behind the nested stackshot %s not read", areBuffers(in.Others)), "; ")
	}
	switch {
	case in.Plain != nil:
	case !errors.Is(broken, kcdata.ErrNotStackshot):
		broken = c.reason(broken)
	case c.name == stdoutName:
		broken = fmt.Errorf("%s: %w", c.name, broken)
	default:
		broken = fmt.Errorf("%s: %w: 'stackshot dump %s' shows it", c.name, broken, screen.Word(c.name))
	}
	return in, broken
}

// snapshot decodes the stackshot of c. If c breaks off, it gives what came before (nil: nothing) and the
// reason.
func (c *contents) snapshot() (*kcdata.Snapshot, error) {
	in, broken := c.stackshot()
	if in.Plain == nil {
		return nil, broken
	}
	s, err := kcdata.ParseSnapshotWithin(in.Plain, kcdata.Memory(c.Size))
	if nothingRead(err) {
		s = nil
	}
	switch {
	case err == nil && cmp.Or(c.cut, broken) != nil:
		err, s.Partial = broken, true
		s.Problems = append(s.Problems, "the file "+brokenBy(cmp.Or(c.cut, broken)))
	case broken != nil && errors.Is(err, kcdata.ErrTruncated):
		err = broken
	case err != nil && in.In != kcdata.TypeInvalid:
		err = fmt.Errorf("in the stackshot at offset %#x: %w", in.Offset, err)
	case c.Follows != "" && s != nil:
		s.Problems = append(s.Problems, c.Follows)
	}
	if s != nil && in.In != kcdata.TypeInvalid {
		s.Problems = slices.Insert(s.Problems, 0, nestedIn(in))
	}
	return s, c.reason(err)
}

func areBuffers(n int) string {
	if n == 1 {
		return "1 buffer is"
	}
	return fmt.Sprintf("%d buffers are", n)
}

// brokenBy says what is wrong with a file whose stackshot has its end.
func brokenBy(err error) string {
	if errors.Is(err, kcdata.ErrTruncated) {
		return fmt.Sprintf("breaks off behind the stackshot: %v", err)
	}
	return fmt.Sprintf("is damaged: %v", err)
}

// nestedIn says where a stackshot comes from that is nested in another buffer.
func nestedIn(in kcdata.Inside) string {
	packed := ""
	if in.Unpacked {
		packed = ", compressed,"
	}
	return fmt.Sprintf("the stackshot is nested in %v%s at offset %#x", in.In, packed, in.Offset)
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

func dumpCommand() *cobra.Command {
	trace, paging := false, paging{}
	cmd := &cobra.Command{
		Use:   "dump FILE",
		Short: "Show every item of a file",
		Long: "Shows every item of a snapshot, or of any KCData file (- for standard input), as it stands there,\n" +
			"also of a file that breaks off.",
		Example: "  stackshot dump FILE\n  stackshot dump --trace FILE",
		Args:    takes(1, 1),
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
	c.sayFollows()
	if err != nil {
		return err
	}
	err = unlessGone(kcdata.Text(w, c.Plain, maxOutput(c.Size)))
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
