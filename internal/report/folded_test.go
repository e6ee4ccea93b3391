package report

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/kcdata"
)

// The form as the flame-graph tools read it: stackcollapse scripts write, and
// flamegraph.pl splits at the last white space and then at semicolons.
var foldedLine = regexp.MustCompile(`^([^\s;]+(?:;[^\s;]+)+) ([1-9][0-9]*)$`)

// parseFolded reads the lines back: frames to count. It fails on anything that
// a flame-graph tool would read otherwise.
func parseFolded(t testing.TB, b []byte) map[string]int {
	t.Helper()
	out := map[string]int{}
	for line := range strings.Lines(string(b)) {
		m := foldedLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("not of the form: %q", line)
		}
		if _, twice := out[m[1]]; twice {
			t.Fatalf("stack twice: %q", line)
		}
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		out[m[1]] = n
	}
	return out
}

func folded(t testing.TB, s *kcdata.Snapshot, o Options) map[string]int {
	t.Helper()
	var b bytes.Buffer
	if err := Folded(&b, s, o); err != nil {
		t.Fatal(err)
	}
	golden.Showable(t, b.Bytes())
	return parseFolded(t, b.Bytes())
}

// checkFolded: the counts add up to the threads shown, and each stack has the
// frames of its threads, in order, each with its mark.
func checkFolded(t testing.TB, s *kcdata.Snapshot, o Options) {
	t.Helper()
	got := folded(t, s, o)
	v := newView(s, o)
	sum := 0
	for _, n := range got {
		sum += n
	}
	if sum != v.counts.Shown {
		t.Fatalf("%d threads in the lines, %d shown", sum, v.counts.Shown)
	}
	f := newFolding(v)
	for _, th := range v.threads() {
		frames := len(th.user)
		kernel := 0
		if th.frames {
			kernel = len(th.Kernel)
		}
		var names []string
		for _, id := range f.frames(th) {
			names = append(names, f.names[id])
		}
		stack := strings.Join(names, ";")
		if got[stack] == 0 {
			t.Fatalf("thread %d: no line %q", th.ID, stack)
		}
		parts := strings.Split(stack, ";")[1:]
		if frames+kernel == 0 {
			frames = 1 // noStack
		}
		if len(parts) != frames+kernel {
			t.Fatalf("thread %d: %d user and %d kernel frames in %q", th.ID, frames, kernel, stack)
		}
		for i, p := range parts {
			if strings.HasSuffix(p, markKernel) != (i >= frames) {
				t.Fatalf("thread %d: frame %d of %q, of which %d are the kernel's", th.ID, i, stack, kernel)
			}
		}
	}
}

// TestFoldedMergesThreads: 300 workers at one stack are one line, whatever they
// are called and wherever in the same functions they are.
func TestFoldedMergesThreads(t *testing.T) {
	got := folded(t, threadPool(), Options{})
	if len(got) != 1 {
		t.Fatalf("%d lines: %v", len(got), got)
	}
	for stack, n := range got {
		want := "server;start_thread;Queue::pop(std::chrono::duration<long>);pthread_cond_wait;__futex_abstimed_wait;" +
			"do_syscall_64_[k];do_futex_[k];futex_wait_[k];futex_wait_queue_[k];schedule_[k];__schedule_[k]"
		if stack != want || n != 303 {
			t.Errorf("%q %d, want %q 303", stack, n, want)
		}
	}
}

// TestFoldedName: no name can end a frame, a line or a stack, nor pass for what
// it is not.
func TestFoldedName(t *testing.T) {
	for in, want := range map[string]string{
		"": "?", "a;b": "a:b", "operator new(unsigned long)": "operator_new(unsigned_long)", "a\nb 3": `a\x0ab_3`,
		"evil_[k]": "evil_(k)", "evil_[j]": "evil_(j)", "_[k]": "_(k)", "x[k]": "x[k]", "a\u2028b": `a\xe2\x80\xa8b`, "a\u00a0b": `a\xc2\xa0b`,
	} {
		if got := foldedName(in); got != want {
			t.Errorf("foldedName(%q) = %q, want %q", in, got, want)
		}
	}
}
