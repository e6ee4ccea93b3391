package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"stackshot/internal/procfs"
	"stackshot/internal/publish"
	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

// here is a user stack of this test.
//
//go:noinline
func here() []uint64 {
	pcs := make([]uintptr, 32)
	var out []uint64
	for _, pc := range pcs[:runtime.Callers(1, pcs)] {
		out = append(out, uint64(pc))
	}
	return out
}

// ownFile is a snapshot as if it had been taken of this test just now, with its
// user stack and no name of a user function. lib is one more mapping.
func ownFile(t *testing.T, stack []uint64, lib string) []byte {
	t.Helper()
	boot, err := procfs.FS{}.BootID()
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	stat := read(t, "/proc/self/stat")
	started, err := procfs.ParseStat(stat)
	if err != nil {
		t.Fatal(err)
	}
	own := ownText(t)
	table := "\x00" + lib + "\x00"
	own.Path = uint32(len(table))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	table += exe + "\x00"
	pid := uint64(os.Getpid())
	w := kcdata.NewWriter(make([]byte, 1<<16))
	err = errors.Join(w.Begin(kcdata.MagicStackshot), w.String(kcdata.TypeLinuxBootID, boot),
		w.Struct(kcdata.TypeLinuxMachine, kcdata.LinuxMachine{PidNS: st.Sys().(*syscall.Stat_t).Ino, PidNSIsFirst: 1}),
		w.BeginContainer(kcdata.TypeTask, pid),
		w.Struct(kcdata.TypeLinuxTask, kcdata.LinuxTask{Tgid: uint32(pid), Present: kcdata.TaskHasTimes, StartBoottime: started.StartBoottime()}),
		w.Bytes(kcdata.TypeLinuxMapStrings, []byte(table)),
		w.StructArray(kcdata.TypeLinuxMapping, []kcdata.LinuxMapping{{Start: 0x1000, End: 0x2000, Path: 1, Inode: 1, BuildIDLen: 2}, own}),
		w.BeginContainer(kcdata.TypeThread, pid), w.Struct(kcdata.TypeLinuxThread, kcdata.LinuxThread{State: 1}),
		w.Struct(kcdata.TypeLinuxUserWalk, kcdata.LinuxUserWalk{Flags: kcdata.UserUnwound | kcdata.UserComplete}),
		w.Uint64s(kcdata.TypeUserStackLR64, append(stack, 0x1234)), w.EndContainer(pid), w.EndContainer(pid), w.End())
	if err != nil {
		t.Fatal(err)
	}
	return w.Written()
}

// ownText is the mapping of this test's own code.
func ownText(t *testing.T) kcdata.LinuxMapping {
	t.Helper()
	maps := read(t, "/proc/self/maps")
	pc, _, _, _ := runtime.Caller(0)
	for line := range strings.Lines(string(maps)) {
		var m kcdata.LinuxMapping
		var perms string
		n, _ := fmt.Sscanf(line, "%x-%x %s %x %x:%x %d", &m.Start, &m.End, &perms, &m.Offset, &m.DevMajor, &m.DevMinor, &m.Inode)
		if n == 7 && m.Start <= uint64(pc) && uint64(pc) < m.End {
			return m
		}
	}
	t.Fatal("no mapping of our own code")
	return kcdata.LinuxMapping{}
}

func put(t *testing.T, content []byte, e kcdata.Envelope) (name string) {
	t.Helper()
	var b bytes.Buffer
	if err := kcdata.Compress(&b, content, e); err != nil {
		t.Fatal(err)
	}
	name = filepath.Join(t.TempDir(), "file.kcdata")
	write(t, name, b.Bytes())
	return name
}

// TestSymbolize: names go into the file, once, in the envelope it had, and from
// then on travel with it; `report` finds the same on this machine by itself.
func TestSymbolize(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	const lib = "/nonexistent/libgone.so"
	plain := ownFile(t, here(), lib)
	for _, e := range []kcdata.Envelope{kcdata.EnvelopeNone, kcdata.EnvelopeZlib, kcdata.EnvelopeZstd} {
		name := put(t, plain, e)
		before := read(t, name)
		onTheFly := stackshot(t, "report", name, "--format", "folded")
		onTheFly.want(t, exitWhole)
		if bare := stackshot(t, "report", name, "--format", "folded", "--no-symbols"); strings.Contains(bare.stdout, "TestSymbolize") {
			t.Fatalf("%v: named without symbols: %s", e, bare.stdout)
		}
		if !bytes.Equal(read(t, name), before) {
			t.Fatalf("%v: report wrote the file", e)
		}
		stackshot(t, "symbolize", name).want(t, exitWhole, name, lib)
		if st, err := os.Lstat(name); err != nil || st.Mode() != 0o600 {
			t.Errorf("%v: mode %v, %v", e, st.Mode(), err)
		}
		onlyFile(t, filepath.Dir(name), filepath.Base(name))
		after := read(t, name)
		if _, got, err := kcdata.Unwrap(after, maxPlain); err != nil || got != e {
			t.Fatalf("%v became %v, %v", e, got, err)
		}
		o := stackshot(t, "report", name, "--format", "folded", "--no-symbols")
		if o.stdout != onTheFly.stdout || !strings.Contains(o.stdout, "TestSymbolize") || !strings.Contains(o.stdout, ".here 1") {
			t.Errorf("%v: from the file:\n%son the fly:\n%s", e, o.stdout, onTheFly.stdout)
		}
		stackshot(t, "symbolize", name).want(t, exitWhole, "new name, module or line: 0", "as it was")
		if again := read(t, name); !bytes.Equal(again, after) {
			t.Errorf("%v: twice is not once: %d and %d bytes", e, len(after), len(again))
		}
	}
}

// TestSymbolizeLines adds source lines to names that are there already.
func TestSymbolizeLines(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	name := put(t, ownFile(t, here(), ""), kcdata.EnvelopeZstd)
	stackshot(t, "symbolize", name).want(t, exitWhole)
	stackshot(t, "symbolize", name, "--lines").want(t, exitWhole)
	o := stackshot(t, "report", name, "--no-symbols")
	if o.want(t, exitWhole); !strings.Contains(o.stdout, "symbolize_test.go:") {
		t.Errorf("no source lines:\n%s", o.stdout)
	}
}

// TestSymbolizeElsewhere: with -o the file stays, and the other has its names;
// a file that nothing is known about is copied byte for byte.
func TestSymbolizeElsewhere(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	for _, stack := range [][]uint64{here(), {0x10, 0x20}} {
		name := put(t, ownFile(t, stack, ""), kcdata.EnvelopeZlib)
		before, out := read(t, name), filepath.Join(t.TempDir(), "out")
		stackshot(t, "symbolize", name, "-o", out).want(t, exitWhole, out)
		if !bytes.Equal(read(t, name), before) {
			t.Error("the file itself changed")
		}
		if same := bytes.Equal(read(t, out), before); same != (len(stack) == 2) {
			t.Errorf("stack of %d: the copy is the same: %v", len(stack), same)
		}
		in := invocation{bend: func(c *exec.Cmd) { c.Stdin = bytes.NewReader(before) }}
		if o := in.run(t, "symbolize", "-"); o.code != 0 || o.stdout != string(read(t, out)) {
			t.Errorf("through standard input: exit code %d, %d bytes, %s", o.code, len(o.stdout), o.stderr)
		}
	}
}

// TestSymbolizeRefuses: what cannot be read whole, or not be replaced, stays.
func TestSymbolizeRefuses(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	name := put(t, ownFile(t, here(), ""), kcdata.EnvelopeNone)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	whole := read(t, name)
	stackshot(t, "symbolize", link).want(t, exitFailed, link)
	if !bytes.Equal(read(t, name), whole) {
		t.Error("written through a symbolic link")
	}
	cut := whole[:len(whole)-32]
	write(t, name, cut)
	stackshot(t, "symbolize", name).want(t, exitFailed, name, "truncated")
	if !bytes.Equal(read(t, name), cut) {
		t.Error("a truncated file was written")
	}
}

// TestSkippedIsSaid: a file that was not there to be read is named at the end of
// the report, and in JSON.
func TestSkippedIsSaid(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	const lib = "/nonexistent/libgone.so"
	name := put(t, ownFile(t, here(), lib), kcdata.EnvelopeZstd)
	text := stackshot(t, "report", name)
	if text.want(t, exitWhole); strings.Count(text.stdout, lib) != 1 || !strings.Contains(text.stdout, "0x1234 [libgone.so+0x234]") {
		t.Errorf("text:\n%s", text.stdout)
	}
	var doc struct {
		NotNamed []string `json:"not_named"`
	}
	o := stackshot(t, "report", name, "--format", "json")
	if err := json.Unmarshal([]byte(o.stdout), &doc); err != nil || len(doc.NotNamed) != 1 || !strings.Contains(doc.NotNamed[0], lib) {
		t.Errorf("%v, not_named %q", err, doc.NotNamed)
	}
}

// TestTakeShowsUserFrames: the report that a capture shows has names too, and
// none where no file may be opened. Not parallel: it takes standard output.
func TestTakeShowsUserFrames(t *testing.T) {
	plain := ownFile(t, here(), "")
	for _, off := range []bool{false, true} {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		stdout := os.Stdout
		os.Stdout = out
		tk := newTake()
		tk.naming.off = off
		err = tk.show(t.Context(), &publish.Destination{Path: "x"}, "x", plain)
		os.Stdout = stdout
		out.Close()
		if err != nil {
			t.Fatal(err)
		}
		text := string(read(t, out.Name()))
		if named := strings.Contains(text, ".TestTakeShowsUserFrames ["); named == off || !strings.Contains(text, "[stackshot.test") {
			t.Errorf("no symbols: %v\n%s", off, text)
		}
	}
	if p := policies(os.Getpid()); p != "other" {
		t.Errorf("who was an ordinary process is %s", p)
	}
}

// What take --keep-stacks leaves, symbolize --unwind makes the same stacks of.
func TestUserProofUnwindCommand(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	needRoot(t)
	k := userlab.StartKperf(t, userlab.Kperf{Frames: userlab.NoFramePointers, Depth: 12})
	dir := t.TempDir()
	kept, bare := filepath.Join(dir, "kept"), filepath.Join(dir, "bare")
	stackshot(t, "take", "-q", "--pid", fmt.Sprint(k.Pid), "--keep-stacks", "-o", kept).want(t, exitWhole)
	stackshot(t, "take", "-q", "--pid", fmt.Sprint(k.Pid), "-o", bare).want(t, exitWhole)
	before := stackshot(t, "report", kept)
	stackshot(t, "symbolize", "--unwind", kept).want(t, exitWhole, "threads again, 0 of them have other frames")
	stackshot(t, "symbolize", "--unwind", kept).want(t, exitWhole, "the file is as it was")
	if after := stackshot(t, "report", kept); before.stdout != after.stdout || !strings.Contains(after.stdout, "recurse_a [kperf") {
		t.Errorf("before\n%s\nafter\n%s", before.stdout, after.stdout)
	}
	stackshot(t, "symbolize", "--unwind", bare).want(t, exitFailed, "--keep-stacks")
}
