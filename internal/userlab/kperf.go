//go:build linux

package userlab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A Frames says how a program keeps its frames.
type Frames string

const (
	FramePointers   Frames = "fp"    // -O1 -fno-omit-frame-pointer
	NoFramePointers Frames = "nofp"  // -O2 -fomit-frame-pointer
	MixedFrames     Frames = "mixed" // recurse_a has them, recurse_b and the rest have not
)

// Kperf is a thread that has called recurse_a and recurse_b, by turns, Depth
// times, and then a leaf that waits in pause(2), or runs in user mode.
type Kperf struct {
	Frames Frames
	Depth  int
	Spin   bool
}

// A KperfProcess is one of them, with its thread.
type KperfProcess struct {
	*Process
	Kperf
	Tid int
}

func (k Kperf) String() string {
	how := "blocked"
	if k.Spin {
		how = "spinning"
	}
	return fmt.Sprintf("kperf %s %s %d", k.Frames, how, k.Depth)
}

// StartKperf builds and starts one. It ends with the test. A spinning one is
// not stopped.
func StartKperf(tb testing.TB, k Kperf) *KperfProcess {
	tb.Helper()
	b := newBuilder(tb)
	l := launch{name: k.String(), argv: []string{b.kperf(k.Frames), "block", strconv.Itoa(k.Depth)}, threads: 2}
	if k.Spin {
		l.argv[1], l.spin = "spin", 1
	}
	p := run(tb, l)
	if len(p.Says) != 1 {
		tb.Fatalf("userlab: %v says %q, want a tid", k, p.Says)
	}
	tid, err := strconv.Atoi(p.Says[0])
	if err != nil {
		tb.Fatalf("userlab: %v: tid: %v", k, err)
	}
	return &KperfProcess{p, k, tid}
}

// kperf compiles each file as f says and links them.
func (b *builder) kperf(f Frames) string {
	const fp, nofp = "-O1 -fno-omit-frame-pointer", "-O2 -fomit-frame-pointer"
	flags := map[Frames][3]string{
		FramePointers:   {fp, fp, fp},
		NoFramePointers: {nofp, nofp, nofp},
		MixedFrames:     {nofp, fp, nofp},
	}[f]
	out := b.file("kperf." + string(f))
	if path := prebuilt(out); path != "" {
		return path
	}
	args := []string{"-pthread", "-o", out}
	for i, name := range []string{"kperf", "kperf_a", "kperf_b"} {
		object := name + "." + string(f) + ".o"
		b.run("gcc", append(strings.Fields(flags[i]), "-fno-optimize-sibling-calls", "-c", "-o", object, name+".c")...)
		args = append(args, object)
	}
	b.run("gcc", args...)
	return b.done(out)
}

// Expected is the sequence of functions from the leaf to the thread's first,
// innermost first. Inside the leaf of a blocked one is the C library's pause,
// outside the first are the library's.
func (k Kperf) Expected() []string {
	leaf := "leaf_blocked"
	if k.Spin {
		leaf = "leaf_spinning"
	}
	names := []string{"kperf_thread"}
	for i := range k.Depth {
		names = append(names, []string{"recurse_a", "recurse_b"}[i%2])
	}
	names = append(names, leaf)
	slices.Reverse(names)
	return names
}

// Check holds a stack, innermost first, against the expected sequence, exactly.
// With a limit above 0 the stack must be cut there if it is longer, and be
// whole if not.
func (k Kperf) Check(frames []Frame, limit int) error {
	got := physical(frames)
	if limit > 0 && len(got) > limit {
		return fmt.Errorf("%v: %d frames, limit %d", k, len(got), limit)
	}
	cut := limit > 0 && len(got) == limit
	if !k.Spin {
		if len(got) == 0 || !isPause(got[0].Func) {
			return fmt.Errorf("%v: innermost of %v is not pause", k, head(got))
		}
		got = got[1:]
	}
	want := k.Expected()
	for i, name := range want {
		switch {
		case i == len(got) && cut:
			return nil
		case i >= len(got):
			return fmt.Errorf("%v: ends after %d of %d frames", k, i, len(want))
		case plainName(got[i].Func) != name:
			return fmt.Errorf("%v: frame %d is %v, want %s; the stack begins %v", k, i, got[i], name, head(got))
		}
	}
	// start_thread and clone3, or nothing where the library has no tables.
	if rest := got[len(want):]; len(rest) > 3 || slices.ContainsFunc(rest, ours) {
		return fmt.Errorf("%v: goes on with %v", k, head(rest))
	}
	return nil
}

func ours(f Frame) bool {
	return strings.HasPrefix(f.Func, "recurse_") || strings.HasPrefix(f.Func, "leaf_") || f.Func == "kperf_thread"
}

func isPause(name string) bool {
	return slices.Contains([]string{"pause", "__pause", "__libc_pause", "__GI___libc_pause"}, plainName(name))
}

func head(frames []Frame) []Frame { return frames[:min(len(frames), 8)] }
