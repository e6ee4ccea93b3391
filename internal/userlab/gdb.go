//go:build linux

package userlab

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// gdbTime is how long gdb may take over one process.
const gdbTime = 60 * time.Second

// ErrWitness says that gdb had nothing to say.
var ErrWitness = errors.New("userlab: gdb is no witness")

// gdb's answer, one line per thread.
type threadLine struct {
	Tid    int
	Frames []struct {
		PC     uint64
		Func   string
		Offset int64
		Kind   string
	}
	Error     string
	Outermost bool
}

// Witness asks gdb for the user stacks of a process. The process is one of the
// test's own and stopped ([Process.Stop]); gdb may let it go on. A thread in
// state D does not stop, and gdb would wait for it: see [LockedMap] for what is
// known of such a one.
func Witness(pid int) ([]Thread, error) {
	dir, err := os.MkdirTemp("", "userlab-gdb-")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWitness, err)
	}
	defer os.RemoveAll(dir)
	lines, err := askGDB(pid, dir)
	if err != nil {
		return nil, fmt.Errorf("%w: pid %d: %w", ErrWitness, pid, err)
	}
	known, err := readMaps(pid)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWitness, err)
	}
	return parseWitness(lines, known.hasCFI)
}

func askGDB(pid int, dir string) ([]byte, error) {
	script, err := sources.ReadFile("testdata/witness.py")
	if err != nil {
		return nil, err
	}
	path, out := filepath.Join(dir, "witness.py"), filepath.Join(dir, "out")
	if err := os.WriteFile(path, script, 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), gdbTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "gdb", "-nx", "-q", "-batch",
		"-iex", "set auto-load off", "-iex", "set debuginfod enabled off", "-iex", "set print thread-events off",
		"-iex", fmt.Sprintf("set sysroot /proc/%d/root", pid),
		"-iex", "set backtrace past-main on", "-iex", "set backtrace limit unlimited",
		"-p", strconv.Itoa(pid), fmt.Sprintf("/proc/%d/exe", pid), "-x", path)
	cmd.Env = append(os.Environ(), "USERLAB_OUT="+out, "LC_ALL=C")
	said, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("gdb: %w\n%s", err, said)
	}
	lines, err := os.ReadFile(out)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, said)
	}
	return lines, nil
}

// parseWitness reads gdb's lines. hasCFI says whether there are unwinding tables
// for an address.
func parseWitness(lines []byte, hasCFI func(pc uint64) bool) ([]Thread, error) {
	var all []Thread
	dec := json.NewDecoder(bytes.NewReader(lines))
	for dec.More() {
		var l threadLine
		if err := dec.Decode(&l); err != nil {
			return nil, fmt.Errorf("%w: thread %d: %w", ErrWitness, len(all), err)
		}
		t := Thread{Tid: l.Tid, Error: l.Error, Outermost: l.Outermost}
		for _, f := range l.Frames {
			t.Frames = append(t.Frames, Frame{PC: f.PC, Func: f.Func, Offset: f.Offset,
				Inline: f.Kind == "inline", Signal: f.Kind == "signal"})
		}
		t.dropZero()
		t.endGo()
		t.trust(hasCFI)
		all = append(all, t)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: no threads", ErrWitness)
	}
	return all, nil
}

// dropZero takes a last caller of 0 for what it is: a table's way to say that
// there is none.
func (t *Thread) dropZero() {
	if n := len(t.Frames) - 1; n > 0 && t.Frames[n].PC == 0 {
		t.Frames, t.Outermost = t.Frames[:n], true
	}
}

// endGo ends the stack of a Go thread of the run time's own where Go says that it
// ends. gdb goes on into runtime.clone, where nothing says what is beyond.
func (t *Thread) endGo() {
	i := slices.IndexFunc(t.Frames, func(f Frame) bool { return plainName(f.Func) == "runtime.mstart" })
	if i >= 0 {
		t.Frames, t.Outermost, t.Error = t.Frames[:i+1], true, ""
	}
}

// trust counts the frames up to the first whose caller gdb can only have
// guessed, that one included. That there is none may be a guess too.
func (t *Thread) trust(hasCFI func(pc uint64) bool) {
	frames := physical(t.Frames)
	exact := true
	for i, f := range frames {
		t.Trusted = i + 1
		if i == len(frames)-1 && !t.Outermost {
			return
		}
		pc := f.PC
		if !exact {
			pc-- // the call, which may be the function's last instruction
		}
		if !f.Signal && !hasCFI(pc) {
			if t.Error == "" {
				t.Error = fmt.Sprintf("no unwinding tables at frame %d, %v", i, f)
			}
			t.Outermost = false
			return
		}
		exact = f.Signal
	}
	if len(frames) == 0 {
		t.Error = cmp.Or(t.Error, "no frames")
	}
}
