//go:build linux && (amd64 || arm64)

package unwind

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stackshot/internal/cursor"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// build compiles files (name → text) of dir with a command line, that of a compiler
// or of a shell whose first word is one.
func build(t testing.TB, dir string, files map[string]string, command ...string) string {
	t.Helper()
	compiler := command[0]
	if compiler == "sh" {
		compiler, _, _ = strings.Cut(command[2], " ")
	}
	testneed.Program(t, compiler)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
	return filepath.Join(dir, "prog")
}

// start runs a program until it has written a line with the number of the thread
// to look at, and then until that thread's state is what is expected.
func start(t testing.TB, state byte, path string, args ...string) (pid, tid int) {
	t.Helper()
	cmd := exec.Command(path, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s did not get ready: %v", path, err)
	}
	if tid, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	waitState(t, cmd.Process.Pid, tid, state)
	return cmd.Process.Pid, tid
}

func waitState(t testing.TB, pid, tid int, state byte) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
		if err != nil {
			t.Fatal(err)
		}
		if _, rest, ok := bytes.Cut(stat, []byte(") ")); ok && rest[0] == state {
			return
		}
	}
	t.Fatalf("thread %d did not come to state %c", tid, state)
}

// taken is a stopped thread, as the window of a snapshot would have it.
type taken struct {
	in    Input
	maps  []kcdata.Mapping
	pid   int
	names map[string]*names
	all   map[string]*Table
	vdso  []byte
}

// take stops a thread and copies its registers, up to size bytes of its stack,
// and its frame-pointer chain.
func take(t testing.TB, pid, tid, size, links int) *taken {
	t.Helper()
	runtime.LockOSThread() // ptrace belongs to a thread
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(tid); err != nil {
		t.Fatal(err)
	}
	if err := unix.PtraceInterrupt(tid); err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(tid, &status, unix.WALL, nil); err != nil {
		t.Fatal(err)
	}
	defer unix.PtraceDetach(tid)
	k := &taken{pid: pid, names: map[string]*names{}, all: map[string]*Table{}}
	k.readMaps(t)
	values := make([]uint64, 64)
	vec := unix.Iovec{Base: (*byte)(unsafe.Pointer(&values[0]))}
	vec.SetLen(len(values) * 8)
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), 1, uintptr(unsafe.Pointer(&vec)), 0, 0); e != 0 {
		t.Fatal(e)
	}
	k.in.Registers = values[:len(archOf(runtime.GOARCH).order)]
	k.readStack(t, size, links)
	return k
}

func (k *taken) readStack(t testing.TB, size, links int) {
	t.Helper()
	a := archOf(runtime.GOARCH)
	regs, _ := a.load(k.in.Registers)
	sp, _ := regs.get(a.sp)
	fp, _ := regs.get(a.fp)
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", k.pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	buf := make([]byte, size)
	n, _ := mem.ReadAt(buf, int64(sp))
	k.in.Stack = []kcdata.UserBytes{{Addr: sp, Data: buf[:n]}}
	for low := sp; len(k.in.Chain) < links; {
		if fp == 0 {
			k.in.ChainComplete = len(k.in.Chain) > 0
			break
		}
		pair := make([]byte, 16)
		if fp < low || fp > sp+8<<20 || fp%8 != 0 {
			break
		}
		if _, err := mem.ReadAt(pair, int64(fp)); err != nil {
			break
		}
		c := cursor.Cursor{Data: pair}
		next, ret := c.U64(), c.U64()
		k.in.Chain = append(k.in.Chain, kcdata.LinuxUserLink{FP: fp, PC: ret})
		low, fp = fp+1, next
	}
	k.vdso = k.readVDSO(mem)
}

func (k *taken) readVDSO(mem io.ReaderAt) []byte {
	for _, m := range k.maps {
		if m.Path == "[vdso]" {
			b := make([]byte, m.End-m.Start)
			n, _ := mem.ReadAt(b, int64(m.Start))
			return b[:n]
		}
	}
	return nil
}

func (k *taken) readMaps(t testing.TB) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", k.pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if !strings.Contains(f[1], "x") {
			continue
		}
		var m kcdata.Mapping
		fmt.Sscanf(f[0], "%x-%x", &m.Start, &m.End)
		fmt.Sscanf(f[2], "%x", &m.Offset)
		if len(f) > 5 {
			m.Path = f[5]
		} else {
			m.Flags = kcdata.MappingAnon
		}
		k.maps = append(k.maps, m)
	}
}

func (k *taken) find(pc uint64) (*kcdata.Mapping, *Table) {
	for i := range k.maps {
		if m := &k.maps[i]; pc >= m.Start && pc < m.End {
			return m, k.table(m)
		}
	}
	return nil, nil
}

func (k *taken) table(m *kcdata.Mapping) *Table {
	if t, ok := k.all[m.Path]; ok {
		return t
	}
	var t *Table
	if r, size := k.open(m); r != nil {
		t, _ = NewTable(r, size)
	}
	k.all[m.Path] = t
	return t
}

func (k *taken) open(m *kcdata.Mapping) (io.ReaderAt, int64) {
	if m.Path == "[vdso]" {
		return bytes.NewReader(k.vdso), int64(len(k.vdso))
	}
	data, err := os.ReadFile(m.Path)
	if err != nil {
		return nil, 0
	}
	return bytes.NewReader(data), int64(len(data))
}

func (k *taken) pc() uint64 {
	a := archOf(runtime.GOARCH)
	regs, _ := a.load(k.in.Registers)
	pc, _ := regs.get(a.pc)
	return pc
}

func (k *taken) process() *Process { return &Process{Arch: runtime.GOARCH, Find: k.find} }

// names are the functions of one file, by link-time address.
type names struct {
	syms []elf.Symbol
}

// name returns the function of a frame; exact where pc is not a return address.
func (k *taken) name(pc uint64, exact bool) string {
	if !exact {
		pc--
	}
	m, t := k.find(pc)
	if m == nil || t == nil {
		return "?"
	}
	n := k.names[m.Path]
	if n == nil {
		n = k.readNames(m)
		k.names[m.Path] = n
	}
	addr, _ := t.AddrOf(pc - m.Start + m.Offset)
	best := "?"
	for _, s := range n.syms {
		if addr-s.Value < max(s.Size, 1) {
			best = s.Name
			break
		}
	}
	return best
}

func (k *taken) readNames(m *kcdata.Mapping) *names {
	r, _ := k.open(m)
	f, err := elf.NewFile(r)
	if err != nil {
		return &names{}
	}
	syms, _ := f.Symbols()
	dyn, _ := f.DynamicSymbols()
	n := &names{}
	for _, s := range slices.Concat(syms, dyn) {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC || s.Name == "_start" {
			n.syms = append(n.syms, s)
		}
	}
	return n
}

// stack returns the names of a result's frames.
func (k *taken) stack(r Result) []string {
	var out []string
	for i, pc := range r.PCs {
		exact := i == 0 || r.How[i] == kcdata.UserFrameSignal
		out = append(out, k.name(pc, exact))
	}
	return out
}
