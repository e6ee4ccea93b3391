package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// span is a range of addresses, end excluded.
type span struct {
	from, to uint64
	what     string
}

// kernelSpans are where the kernel's code and data, its modules and generated
// code lie, from /proc/kallsyms and /proc/modules.
func kernelSpans(tb testing.TB) []span {
	tb.Helper()
	var text, end, last uint64
	var out []span
	for line := range strings.Lines(slurp(tb, "/proc/kallsyms")) {
		f := strings.Fields(line)
		addr, err := strconv.ParseUint(f[0], 16, 64)
		if err != nil {
			tb.Fatal(err)
		}
		switch {
		case len(f) > 3:
			if addr != 0 {
				out = append(out, span{addr, addr + 64, f[3] + " " + f[2]})
			}
		case f[2] == "_text" || text == 0 && f[2] == "_stext":
			text = addr
		case f[2] == "_end":
			end = addr
		case f[1] != "A" && f[1] != "a":
			last = max(last, addr)
		}
	}
	if end == 0 { // without CONFIG_KALLSYMS_ALL: code only
		end = last
	}
	if text == 0 || end <= text {
		tb.Fatalf("the kernel lies from %#x to %#x", text, end)
	}
	out = append(out, span{text, end, "the kernel's image"})
	mods, err := procfs.ReadModules("/proc", "/sys")
	if err != nil {
		tb.Fatal(err)
	}
	for _, m := range mods {
		out = append(out, span{m.Addr, m.Addr + m.Size, "module " + m.Name})
	}
	slices.SortFunc(out, func(a, b span) int {
		if a.from < b.from {
			return -1
		}
		return 1
	})
	return out
}

// addressesIn gives the words of a file, at any offset, that lie in a span.
func addressesIn(file []byte, spans []span) []string {
	lowest := spans[0].from
	var out []string
	for off := 0; off+8 <= len(file); off++ {
		v := binary.LittleEndian.Uint64(file[off:])
		if v < lowest {
			continue
		}
		for _, s := range spans {
			if v >= s.from && v < s.to {
				out = append(out, fmt.Sprintf("%#x at byte %d is in %s", v, off, s.what))
				break
			}
		}
	}
	return out
}

// nonZero is how many bytes of v are not zero.
func nonZero(v uint64) (n int) {
	for ; v != 0; v >>= 8 {
		if v&0xff != 0 {
			n++
		}
	}
	return n
}

// isText reports whether b may be part of a name or a text that the file may hold, such as
// the spaces of /proc/meminfo.
func isText(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool { return r != 0 && (r < ' ' || r > '~') })
}

// registers are the register and argument values of a file that do not occur
// in another by chance, as round and small ones do.
func registers(s *kcdata.Snapshot) map[uint64]string {
	out := map[uint64]string{}
	for _, task := range s.Tasks {
		if m := task.Memory; m != nil {
			for _, v := range []uint64{m.StartStack, m.EndCode, m.EndData} {
				if nonZero(v) >= 4 {
					out[v] = "address of a task's memory"
				}
			}
		}
		for _, m := range task.Mappings {
			if nonZero(m.Start) >= 4 {
				out[m.Start] = "mapping of " + m.Path
			}
		}
		for _, th := range task.Threads {
			note := func(v uint64, what string) {
				if nonZero(v) >= 4 && v < 1<<63 {
					out[v] = fmt.Sprintf("%s of thread %d", what, th.ID)
				}
			}
			note(th.Linux.FsBase, "fs_base")
			for i, v := range th.Registers {
				note(v, fmt.Sprintf("register %d", i))
			}
			for i, v := range th.User {
				note(v, fmt.Sprintf("user frame %d", i))
			}
			for _, c := range th.UserChain {
				note(c.FP, "frame pointer")
				note(c.PC, "return address")
			}
			for _, b := range th.UserBytes {
				note(b.Addr, "stack's address")
				for d := b.Data; len(d) >= 8; d = d[8:] {
					if !isText(d[:8]) {
						note(binary.LittleEndian.Uint64(d), "stack")
					}
				}
			}
			for _, f := range th.Futexes {
				note(f.Addr, "futex word")
				for d := f.Around[:]; len(d) >= 8; d = d[8:] {
					if !isText(d[:8]) {
						note(binary.LittleEndian.Uint64(d), "bytes around a futex word")
					}
				}
				out[f.Place] = "place of a futex word"
			}
			if w := th.Wait; w != nil {
				out[w.Lock] = fmt.Sprintf("kernel lock that thread %d waits for", th.ID)
			}
			delete(out, 0)
			if c := th.Syscall; c != nil {
				note(c.IP, "ip")
				note(c.SP, "sp")
				for i, a := range c.Args {
					note(a, fmt.Sprintf("argument %d", i))
				}
			}
		}
	}
	return out
}

const argMark = "/proc/self/exe" // the command line of every actor: the way it was started

func TestRedactedFileHoldsNoValueAndNoAddress(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	spans := kernelSpans(t)
	_, pids := stillWorld(t, testtask.Forked, testtask.PipeRead, testtask.FutexWait, testtask.EpollWait, testtask.Spinning,
		testtask.MutexWait, testtask.Zombie, testtask.MidExit, testtask.TracedExit, testtask.ManyThreads(8), testtask.Bystanders(5))
	_, open, openFile := takeWhole(t, Options{Engine: EnginePull, KeepStacks: true}, Request{Pids: pids})
	values := registers(open)
	if len(userSide(t, openFile)) == 0 {
		t.Error("the file without --redact has nothing of the user side")
	}
	for _, what := range []string{"stack", "mapping of"} {
		if !slices.ContainsFunc(slices.Collect(maps.Values(values)), func(s string) bool { return strings.HasPrefix(s, what) }) {
			t.Errorf("the file without --redact has no %s", what)
		}
	}
	if len(values) < 10 || len(addressesIn(openFile, spans)) == 0 || !bytes.Contains(openFile, []byte(argMark)) {
		t.Fatalf("%d values: the file without --redact has not what the one with it must not have", len(values))
	}
	for _, engine := range []string{EngineTrap, EnginePull, EngineProcfs} {
		for _, scope := range [][]int{pids, nil} {
			res, shut, file := takeWhole(t, Options{Engine: engine, Redact: true, KeepStacks: true}, Request{Pids: scope})
			what := fmt.Sprintf("%s, %d tasks", engine, res.Tasks)
			for i, a := range addressesIn(file, spans) {
				if i < 5 {
					t.Errorf("%s: %s", what, a)
				}
			}
			for off := 0; off+8 <= len(file); off++ {
				if whose, ok := values[binary.LittleEndian.Uint64(file[off:])]; ok {
					t.Errorf("%s: the %s, %#x, stands at byte %d", what, whose, binary.LittleEndian.Uint64(file[off:]), off)
				}
			}
			redactedWaits(t, what, shut)
			for _, what := range userSide(t, file) {
				t.Errorf("%s: %s", what, "is in the file")
			}
			if bytes.Contains(file, []byte(argMark)) {
				t.Errorf("%s: a command line is in the file", what)
			}
		}
	}
}

// redactedWaits checks that records of waits hold numbers in place of addresses, and no memory.
func redactedWaits(tb testing.TB, what string, s *kcdata.Snapshot) {
	tb.Helper()
	most := uint64(s.ThreadCount()) * 128
	for id, th := range threadsByID(s) {
		if th.Wait != nil && th.Wait.Lock > most {
			tb.Errorf("%s: thread %d waits for lock %#x", what, id, th.Wait.Lock)
		}
		for _, f := range th.Futexes {
			if f.Addr == 0 || f.Addr > most || f.Place != 0 || f.Expected != 0 || f.Have != 0 || f.Around != [40]byte{} {
				tb.Errorf("%s: thread %d waits for %+v", what, id, f)
			}
		}
	}
}

// userSide are the items of a file that come from user memory, mappings or the
// files behind them.
func userSide(tb testing.TB, file []byte) (found []string) {
	tb.Helper()
	r, err := kcdata.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	for it, err := range r.Items() {
		if err != nil {
			tb.Fatal(err)
		}
		kind, _, count := it.Elem()
		if kind == 0 || count == 0 {
			kind = it.Type
		}
		switch kind {
		case kcdata.TypeLinuxUserTaken, kcdata.TypeLinuxUserWalk, kcdata.TypeLinuxUserChain, kcdata.TypeLinuxUserBytes,
			kcdata.TypeLinuxUserHow, kcdata.TypeUserStackLR64, kcdata.TypeLinuxRegisters, kcdata.TypeLinuxMapping,
			kcdata.TypeLinuxMapName, kcdata.TypeLinuxMapWalk, kcdata.TypeLinuxMapStrings, kcdata.TypeLinuxUserSymbol, kcdata.TypeLinuxCmdline:
			found = append(found, fmt.Sprintf("item %#x at byte %d", uint32(kind), it.Offset))
		}
	}
	return found
}

func TestRedactedFileNamesTheSameFunctions(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	_, pids := stillWorld(t, testtask.Forked, testtask.PipeRead, testtask.FutexWait, testtask.Spinning,
		testtask.MutexWait, testtask.MidExit, testtask.ManyThreads(8))
	pids = append(pids, 2) // kthreadd
	for _, engine := range []string{EnginePull, EngineProcfs} {
		_, open, _ := takeWhole(t, Options{Engine: engine}, Request{Pids: pids})
		_, shut, _ := takeWhole(t, Options{Engine: engine, Redact: true}, Request{Pids: pids})
		if shut.Machine.Redacted != 1 || shut.Machine.TextAddr != 0 || open.Machine.TextAddr == 0 || shut.BootArgs != "" {
			t.Errorf("%s: machine %+v, boot arguments %q", engine, shut.Machine, shut.BootArgs)
		}
		in := threadsByID(shut)
		for id, th := range threadsByID(open) {
			r := in[id]
			if r == nil {
				t.Fatalf("%s: thread %d is in one file only", engine, id)
			}
			if a, b := functions(open, th.Kernel), functions(shut, r.Kernel); !slices.Equal(a, b) && th.Sample == nil && r.Sample == nil {
				t.Errorf("%s: thread %d: %v, redacted %v", engine, id, a, b)
			}
			for i, addr := range r.Kernel {
				if addr == 0 || slices.Contains(th.Kernel, addr) {
					t.Errorf("%s: thread %d: frame %d is %#x with --redact, %#x without", engine, id, i, addr, th.Kernel[i])
				}
			}
			if (th.Syscall == nil) != (r.Syscall == nil) || th.Syscall != nil && *r.Syscall != (kcdata.LinuxSyscall{Nr: th.Syscall.Nr}) {
				t.Errorf("%s: thread %d: system call %+v, want %+v without its values", engine, id, r.Syscall, th.Syscall)
			}
			if r.Linux.Present&kcdata.ThreadHasFsBase != 0 || r.Linux.FsBase != 0 {
				t.Errorf("%s: thread %d: fs_base %#x", engine, id, r.Linux.FsBase)
			}
		}
		for _, task := range shut.Tasks {
			if task.Cmdline != nil {
				t.Errorf("%s: task %d has a command line", engine, task.ID)
			}
		}
	}
}
