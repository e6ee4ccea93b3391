package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"stackshot/internal/extract"
	"stackshot/internal/show"
	"stackshot/internal/vmcore"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// extracting is one run of `stackshot extract`.
type extracting struct {
	output      string
	frames      string
	compression string
	list        bool
	quiet       bool
	timeout     time.Duration
}

func extractCommand() *cobra.Command {
	x := &extracting{compression: kcdata.EnvelopeZstd.String()}
	cmd := &cobra.Command{
		Use:   "extract CORE",
		Short: "Get the snapshot of a panic, or of a SysRq, out of a dump of the machine's memory",
		Long: "Searches CORE for the memory that `stackshot arm` keeps on the machine, and writes what a\n" +
			"panic or a SysRq recorded there into an ordinary file (mode 0600). CORE is an ELF core\n" +
			"(/proc/vmcore, makedumpfile -E, QEMU's dump-guest-memory, virsh dump) or a\n" +
			"kdump-compressed file (makedumpfile -c, -z). Any machine can read it; it needs no symbols.\n\n" +
			"Nothing was stopped when the kernel recorded this. The exit code is 3 if a file is written\n" +
			"and lacks something.",
		Example: "  stackshot extract /var/crash/202611280312/vmcore\n  stackshot extract --list vmcore\n  stackshot extract /proc/vmcore -o /mnt/panic.kcdata.zst",
		Args:    takes(1, 1),
		RunE:    func(cmd *cobra.Command, args []string) error { return x.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVarP(&x.output, "output", "o", "", "write to `FILE`; - for standard output\n(default: the dead machine's host and time, in the current directory)")
	f.StringVar(&x.frames, "frames", "", "`FILE` that stackshot arm wrote beside its captures: where the memory lies, so that nothing is searched")
	f.BoolVar(&x.list, "list", false, "list what is found, and write nothing")
	f.BoolVarP(&x.quiet, "quiet", "q", false, "say nothing but errors")
	f.StringVar(&x.compression, "compress", x.compression, "zstd, zlib (readable by Apple's decoder) or none")
	f.DurationVar(&x.timeout, "write-timeout", time.Minute, "longest time to wait for the target's file system")
	completeWith(cmd, "compress", "zstd", "zlib", "none")
	return cmd
}

// heapGoal is what the collector keeps to, if what is needed fits: in all the command then takes at most 64 MiB.
const heapGoal = 28 << 20

func (x *extracting) check(cmd *cobra.Command) error {
	if _, ok := envelopes[x.compression]; !ok {
		return &snapshot.OptionError{Option: "compress", Value: x.compression, Reason: "want zstd, zlib or none"}
	}
	for _, name := range []string{"output", "frames"} {
		if s, _ := cmd.Flags().GetString(name); s == "" && cmd.Flags().Changed(name) {
			return &snapshot.OptionError{Option: name, Value: `""`, Reason: "want a value"}
		}
	}
	switch {
	case x.timeout <= 0:
		return &snapshot.OptionError{Option: "write-timeout", Value: x.timeout.String(), Reason: "want more than 0"}
	case x.list && x.output != "":
		return usage("--list writes no file: leave out --output")
	}
	return nil
}

func (x *extracting) run(cmd *cobra.Command, name string) error {
	if err := x.check(cmd); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE)
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(heapGoal) // a capture kernel has little memory
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	if x.output != "" { // before a long search
		if err := checkTarget(ctx, x.destination(x.output, "")); err != nil {
			return err
		}
	}
	var core *vmcore.Core
	var found *extract.Found
	var warnings []string
	_, err := graced(ctx, func() (_ struct{}, err error) {
		if core, err = vmcore.Open(name); err == nil {
			found, warnings, err = x.find(ctx, core, name)
		}
		return struct{}{}, err
	})
	if err != nil {
		return err
	}
	defer core.Close()
	if x.list {
		return x.show(name, found, warnings)
	}
	return x.write(ctx, name, found, warnings)
}

// find looks for regions. warnings are about the dump.
func (x *extracting) find(ctx context.Context, core *vmcore.Core, name string) (found *extract.Found, warnings []string, err error) {
	for _, flaw := range core.Flaws() {
		warnings = append(warnings, "the dump: "+flaw.Error())
	}
	mem := interruptible{core, ctx}
	if x.frames != "" {
		file, err := readFrames(x.frames)
		if err != nil {
			return nil, nil, err
		}
		if found, err = extract.FromFrames(mem, file); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", x.frames, err)
		}
	} else {
		done := progress(x.quiet, "searching "+filepath.Base(name))
		found, err = extract.Find(mem)
		done()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if t := found.Tally; t.Damaged > 0 {
		warnings = append(warnings, fmt.Sprintf("the dump: %d pages are damaged, the first: %v", t.Damaged, t.First))
	}
	return found, append(warnings, found.Flaws...), nil
}

// maxFrames bounds a frames file: more runs of frames than extraction takes need 17 MiB.
const maxFrames = 20 << 20

func readFrames(name string) ([]byte, error) {
	st, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s: no frames file: not a regular file", name)
	case st.Size() > maxFrames:
		return nil, fmt.Errorf("%s: no frames file: %d bytes, at most %d", name, st.Size(), maxFrames)
	}
	return os.ReadFile(name)
}

// interruptible is a dump whose search ends with a context.
type interruptible struct {
	*vmcore.Core
	ctx context.Context
}

func (m interruptible) Pages(fn func(uint64, []byte) error) (vmcore.Tally, error) {
	return m.Core.Pages(func(pa uint64, run []byte) error {
		if m.ctx.Err() != nil {
			return context.Cause(m.ctx)
		}
		return fn(pa, run)
	})
}

// show lists the regions.
func (x *extracting) show(name string, found *extract.Found, warnings []string) error {
	var out strings.Builder
	for _, r := range found.Regions {
		fmt.Fprintln(&out, show.Clean(r.Line()))
		for _, flaw := range r.Flaws {
			fmt.Fprintln(&out, "  !! "+show.Clean(flaw))
		}
	}
	if _, err := os.Stdout.WriteString(out.String()); unlessGone(err) != nil {
		return fmt.Errorf("write the list: %w", show.WithoutPath(err))
	}
	for _, w := range warnings {
		say(os.Stderr, "!! %s", w)
	}
	switch {
	case len(found.Regions) == 0:
		return x.errNoRegion(name, found)
	case found.Regions[0].Err != nil:
		return fmt.Errorf("%s: nothing can be extracted", name)
	}
	return nil
}

// mostLines bounds the regions about which there is a line: memory that somebody made may have thousands.
const mostLines = 16

// errNoRegion says why there is nothing to extract.
func (x *extracting) errNoRegion(name string, found *extract.Found) error {
	if len(found.Regions) == 0 {
		return fmt.Errorf("%s: no memory of stackshot arm in %d pages: it was not running, or the dump leaves kernel memory out", name, found.Tally.Pages)
	}
	text := name + ": nothing can be extracted: "
	if len(found.Regions) > 1 {
		text += "\n"
	}
	text += strings.Join(regionLines(found.Regions), "\n")
	if x.frames != "" {
		text += fmt.Sprintf("\n%s may be of another boot, or damaged: without --frames the dump is searched", x.frames)
	}
	return errors.New(text)
}

// regionLines has one for each region, up to mostLines.
func regionLines(regions []*extract.Region) (out []string) {
	for _, r := range regions[:min(len(regions), mostLines)] {
		out = append(out, r.Line())
	}
	if n := len(regions) - mostLines; n > 0 {
		out = append(out, fmt.Sprintf("and %d more regions", n))
	}
	return out
}
