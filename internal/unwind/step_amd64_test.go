package unwind

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// lazyC goes through what compilers do not write: the lazy resolver, string functions in
// assembly, setjmp, vfork; callbacks, a library loaded late, an array of variable length.
// Not swapcontext: glibc's tables are wrong at ten of its instructions, where it has
// loaded another stack pointer, and gdb follows them too.
const lazyC = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline))
static jmp_buf jb;
static int cmp(const void *a, const void *b) { return *(int *)a - *(int *)b; }
static NOINLINE int back(int n) { if (n == 0) longjmp(jb, 1); return back(n - 1) + 1; }
static NOINLINE int rec(int n) { char b[40]; memset(b, n, sizeof b); return n ? rec(n - 1) + b[n % 40] : b[3]; }
static NOINLINE void va(int n) { char b[n]; memset(b, 1, n); if (b[n - 1] == 3) exit(1); rec(3); }
int main(int c, char **v) {
	int a[64]; char b[4096], d[4096];
	for (int i = 0; i < 64; i++) a[i] = (i * 37) % 64;
	qsort(a, 64, sizeof *a, cmp);
	memset(b, 'x', sizeof b); b[4095] = 0; strcpy(d, b); memmove(d + 1, d, 3000);
	snprintf(d, sizeof d, "%s %d %.3f %Lf", b + 4000, (int)strlen(b), pow(1.5, c + 1.3), (long double)a[3]);
	if (!setjmp(jb)) back(5);
	va(c * 100);
	void *h = dlopen("libm.so.6", RTLD_LAZY);
	if (h) ((double (*)(double, double))dlsym(h, "pow"))(2.5, 3.5);
	char *p = malloc(10); p = realloc(p, 1 << 20); free(p);
	if (vfork() == 0) _exit(0);
	wait(0);
	return strcmp(b, d) + (strtod("3.25", 0) > 4) > 100;
}
`

const throwsCC = `#include <stdexcept>
#include <string>
#include <vector>
struct G { ~G() { asm volatile(""); } };
__attribute__((noinline)) int thrower(int n) { G g; if (n > 2) throw std::runtime_error(std::string(n, 'x')); return n; }
__attribute__((noinline)) int middle(int n) { G g; std::vector<int> v(n + 1); return thrower(n) + v[0]; }
int main() { int r = 0; for (int i = 0; i < 5; i++) try { r += middle(i); } catch (const std::exception &e) { r += e.what()[0]; } return r > 1000; }
`

const hashRS = `use std::collections::HashMap;
#[inline(never)] fn work(n: u64, m: &mut HashMap<String, Vec<u64>>) -> u64 { for i in 0..n { m.entry(format!("k{}", i % 7)).or_default().push(i * 3); } let mut v: Vec<_> = m.iter().map(|(k, v)| (k.len(), v.iter().sum::<u64>())).collect(); v.sort(); v.iter().map(|x| x.1).sum() }
fn main() { let mut m = HashMap::new(); let r = work(40, &mut m); println!("{} {:.3} {:?}", r, (r as f64).powf(1.3), "x1".parse::<u32>()); }
`

// TestEveryInstruction runs programs one instruction at a time, and takes their stack at
// each that they come to, once. The witness is a list of the calls that have not returned,
// kept on the way. A stack is that list, or says that it is not certain.
func TestEveryInstruction(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	for name, p := range map[string]struct {
		files   map[string]string
		command []string
	}{
		"lazy":         {map[string]string{"p.c": lazyC}, []string{"gcc", "-O2", "-Wl,-z,lazy", "-o", "prog", "p.c", "-lm"}},
		"shadow stack": {map[string]string{"p.c": lazyC}, []string{"gcc", "-O2", "-Wl,-z,now", "-fcf-protection=full", "-o", "prog", "p.c", "-lm"}},
		"k8":           {map[string]string{"p.c": lazyC}, []string{"gcc", "-O2", "-static", "-mtune=k8", "-fno-omit-frame-pointer", "-o", "prog", "p.c", "-lm"}},
		"clang":        {map[string]string{"p.c": lazyC}, []string{"clang-19", "-O2", "-o", "prog", "p.c", "-lm"}},
		"C++":          {map[string]string{"p.cc": throwsCC}, []string{"g++", "-O2", "-static-libstdc++", "-static-libgcc", "-o", "prog", "p.cc"}},
		"Rust":         {map[string]string{"p.rs": hashRS}, []string{"rustc", "-O", "-o", "prog", "p.rs"}},
		"musl":         {map[string]string{"p.c": lazyC}, []string{"musl-gcc", "-O2", "-o", "prog", "p.c"}},
		"musl static":  {map[string]string{"p.c": lazyC}, []string{"musl-gcc", "-O2", "-static", "-o", "prog", "p.c"}},
	} {
		t.Run(name, func(t *testing.T) {
			step(t, build(t, t.TempDir(), p.files, p.command...), p.command[0] != "musl-gcc")
		})
	}
}

// stepped is a program that runs one instruction at a time.
type stepped struct {
	taken
	mem    *os.File
	regs   unix.PtraceRegs
	entry  uint64   // where its stack pointer was at first
	popped uint64   // the address that the last pop has read,
	popper uint64   // and where it stands
	calls  []pushed // that have not returned, outermost first
}

// pushed is a return address, and where it lies.
type pushed struct{ slot, ret uint64 }

// step runs a program. tables: all its code has them.
func step(t *testing.T, path string, tables bool) {
	runtime.LockOSThread() // ptrace belongs to a thread
	defer runtime.UnlockOSThread()
	cmd := exec.Command(path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	s := stepped{taken: taken{pid: cmd.Process.Pid, names: map[string]*names{}, all: map[string]*Table{}}}
	var status unix.WaitStatus
	if _, err := unix.Wait4(s.pid, &status, unix.WALL, nil); err != nil || !status.Stopped() {
		t.Fatal(err, status)
	}
	var err error
	if s.mem, err = os.Open(fmt.Sprintf("/proc/%d/mem", s.pid)); err != nil {
		t.Fatal(err)
	}
	defer s.mem.Close()
	s.readMaps(t)
	s.vdso = s.readVDSO(s.mem)
	unix.PtraceGetRegs(s.pid, &s.regs)
	s.entry = s.regs.Rsp
	seen, found := map[uint64]bool{}, map[string]int{}
	steps := 0
	for {
		was := s.regs
		if err := unix.PtraceSingleStep(s.pid); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Wait4(s.pid, &status, unix.WALL, nil); err != nil || !status.Stopped() {
			break
		}
		if status.StopSignal() != unix.SIGTRAP {
			continue // a child's end: ignored
		}
		unix.PtraceGetRegs(s.pid, &s.regs)
		s.follow(was)
		if steps++; !seen[s.regs.Rip] {
			seen[s.regs.Rip] = true
			found[s.judge(t, tables)]++
		}
	}
	t.Log(steps, "steps,", len(seen), "instructions:", found)
	if !status.Exited() || len(seen) < 4000 {
		t.Errorf("it has not run to its end: status %#x", status)
	}
	if tables && found["right"] < (len(seen)-found["begun"])*95/100 {
		t.Error("too little of it is certain") // what the linker adds has no table
	}
}

// follow keeps calls, after one instruction. A call is over when the stack pointer is above
// its return address. But vfork pops that into a register long before it returns.
func (s *stepped) follow(was unix.PtraceRegs) {
	sp, ip := s.regs.Rsp, s.regs.Rip
	word := make([]byte, 8)
	if s.mem.ReadAt(word[:1], int64(was.Rip)); word[0]&^7 == 0x58 { // pop
		s.popped, s.popper = was.Rsp, was.Rip
	}
	for n := len(s.calls) - 1; n >= 0 && s.calls[n].slot < sp; n-- {
		if c := s.calls[n]; c.slot == s.popped && ip-s.popper < 16 && ip != c.ret {
			break
		}
		s.calls = s.calls[:n]
	}
	if sp == was.Rsp-8 {
		s.mem.ReadAt(word, int64(sp))
		if ret := binary.LittleEndian.Uint64(word); ret > was.Rip && ret <= was.Rip+8 && ip != ret {
			s.calls = append(s.calls, pushed{sp, ret})
		}
	}
}

// judge unwinds, and holds the frames against the calls.
func (s *stepped) judge(t *testing.T, tables bool) string {
	r := &s.regs
	if m, _ := s.find(r.Rip); m == nil { // loaded since
		s.maps = nil
		s.readMaps(t)
	}
	stack := make([]byte, s.entry+16-r.Rsp) // as far as a capture has it
	n, _ := s.mem.ReadAt(stack, int64(r.Rsp))
	in := Input{Max: 1000, Stack: []kcdata.UserBytes{{Addr: r.Rsp, Data: stack[:n]}}, Registers: []uint64{
		r.R15, r.R14, r.R13, r.R12, r.Rbp, r.Rbx, r.R11, r.R10, r.R9, r.R8, r.Rax, r.Rcx, r.Rdx, r.Rsi, r.Rdi,
		r.Orig_rax, r.Rip, r.Cs, r.Eflags, r.Rsp, r.Ss,
	}}
	got := s.process().Unwind(in)
	want := []uint64{r.Rip}
	for _, c := range slices.Backward(s.calls) {
		want = append(want, c.ret)
	}
	right, unsure := slices.Equal(got.PCs, want), got.Flags&kcdata.UserCallersUnsure != 0
	sure := got.Flags&kcdata.UserComplete != 0 && !unsure
	if right && sure {
		return "right"
	}
	var calls []string
	for i, pc := range want {
		calls = append(calls, s.name(pc, i == 0))
	}
	first, _ := s.find(want[len(want)-1])
	switch {
	case !right && slices.ContainsFunc(calls[:min(2, len(calls))], func(f string) bool { return strings.HasPrefix(f, "_Unwind_") }):
		return "throws" // it has put the address to land at in the place of its own
	case sure, tables && !right && !unsure && !errors.Is(got.Err, errNoPath): // all of the stack was there
		m, table := s.find(r.Rip)
		var at uint64
		if table != nil {
			at, _ = table.AddrOf(r.Rip - m.Start + m.Offset)
		}
		t.Errorf("%s %#x: ours %s; true %s; flags %#x at %#x: %v", filepath.Base(m.Path), at,
			brief(s.stack(got)), brief(calls), got.Flags, got.StopAddr, got.Err)
	case strings.HasPrefix(filepath.Base(first.Path), "ld-"):
		return "begun" // by the dynamic linker, whose first instructions have no table
	}
	if right {
		return "right, not sure"
	}
	return "not sure"
}
