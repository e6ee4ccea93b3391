package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stackshot/internal/report"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// A file that ends early, at whatever byte, be it of one task or of many: its report, with one clear error that
// names file and offset, and exit code 3; 1 only where nothing was left to read. The
// tasks are the first of those of the whole file, and as many as the plain form has
// that ends where the packed one's content does.
func TestTruncatedFiles(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	for _, whole := range [][]byte{smallSnapshot(t, "none"), manyTasks(t, 500)} {
		for _, e := range []kcdata.Envelope{kcdata.EnvelopeNone, kcdata.EnvelopeZlib, kcdata.EnvelopeZstd} {
			var packed bytes.Buffer
			if err := kcdata.Compress(&packed, whole, e); err != nil {
				t.Fatal(err)
			}
			checkCuts(t, e.String(), whole, packed.Bytes())
		}
	}
}

func checkCuts(t *testing.T, kind string, whole, data []byte) {
	t.Helper()
	name := filepath.Join(t.TempDir(), kind)
	write(t, name, data)
	step, shown, many := 1, 0, len(whole) > 256<<10
	for n := len(data) - 1; n >= 0; n -= step {
		if err := os.Truncate(name, int64(n)); err != nil {
			t.Fatal(err)
		}
		err := (&reporting{naming: naming{off: true}, format: "text", o: report.Options{GroupBy: report.ByState}}).show(t.Context(), io.Discard, name)
		var format *kcdata.FormatError
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "offset 0x") ||
			n > 0 && !errors.As(err, &format) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%s cut to %d of %d bytes: %v", kind, n, len(data), err)
		}
		plain, _, _ := kcdata.Unwrap(data[:n], maxPlain)
		if !bytes.HasPrefix(whole, plain) {
			t.Fatalf("%s cut to %d of %d bytes: what it unpacks to is not the beginning of the whole", kind, n, len(data))
		}
		_, broken := kcdata.ParseSnapshot(plain)
		want := exitIncomplete
		if plain == nil || nothingRead(broken) {
			want = exitFailed
		}
		if got := exitCode(err); got != want {
			t.Fatalf("%s cut to %d of %d bytes, %d of them plain: exit code %d, want %d: %v", kind, n, len(data), len(plain), got, want, err)
		}
		if want == exitIncomplete {
			shown++
		}
		if dumped := exitCode(dump(io.Discard, name)); dumped != want {
			t.Fatalf("dump of %s cut to %d of %d bytes: exit code %d, want %d", kind, n, len(data), dumped, want)
		}
		if step = 1; n > 100 && n < len(data)-50 || many {
			step = 1 + len(data)/60
		}
	}
	if shown == 0 && (many || kind != "zstd") { // what is small is one block there, and comes out as a whole
		t.Errorf("%s: of %d cuts none had a report", kind, len(data))
	}
}

// manyTasks is a file of n tasks with a thread each, in which no two numbers are
// alike.
func manyTasks(t *testing.T, n int) []byte {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	w := kcdata.NewWriter(make([]byte, n*1500+4096))
	errs := []error{w.Begin(kcdata.MagicStackshot)}
	for id := range uint64(n) {
		id++
		stack := make([]uint64, 20)
		for i := range stack {
			stack[i] = 0xffffffff81000000 + rng.Uint64N(1<<15)
		}
		task := kcdata.LinuxTask{Present: kcdata.TaskHasIDs, Tgid: uint32(id), StartTime: rng.Uint64()}
		th := kcdata.LinuxThread{Present: kcdata.ThreadHasRuntime, Tid: uint32(id), State: 1, SumExecRuntime: rng.Uint64(), RunDelay: rng.Uint64()}
		errs = append(errs, w.BeginContainer(kcdata.TypeTask, id), w.Struct(kcdata.TypeLinuxTask, task), w.BeginContainer(kcdata.TypeThread, id),
			w.Struct(kcdata.TypeLinuxThread, th), w.Uint64s(kcdata.TypeKernStackLR64, stack), w.Uint64s(kcdata.TypeUserStackLR64, stack),
			w.EndContainer(id), w.EndContainer(id))
	}
	if err := errors.Join(append(errs, w.End())...); err != nil {
		t.Fatal(err)
	}
	return w.Written()
}

// A big file is not a hostile one: 100,000 threads are decoded whole, packed too,
// each of them with stacks of its own. In short, 20,000.
func TestBigFile(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	threads := testneed.Length(20_000, 100_000)
	var packed bytes.Buffer
	if err := kcdata.Compress(&packed, manyTasks(t, threads), kcdata.EnvelopeZstd); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "big")
	write(t, name, packed.Bytes())
	for _, args := range [][]string{{"report", "--no-symbols"}, {"latency"}} {
		var last tail
		in := invocation{bend: func(c *exec.Cmd) { c.Stdout = &last }}
		o := in.run(t, append(args, name)...)
		o.want(t, exitWhole)
		t.Logf("%s of %d bytes: %d MiB, %v", args[0], packed.Len(), o.peak>>20, o.took)
		if args[0] == "report" && !strings.Contains(string(last), fmt.Sprint(threads, " threads: ")) {
			t.Errorf("the report ends with %q", last)
		}
	}
}

// tail keeps the last bytes written to it.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p[max(0, len(p)-300):]...)
	*t = (*t)[max(0, len(*t)-300):]
	return len(p), nil
}
