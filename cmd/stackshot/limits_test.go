package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/limits"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// bound is a limit of a control group, and how the kernel says that somebody met it.
type bound struct {
	dir, file     string
	most          int64
	events, event string
}

// step runs a capture under a bound. It has a whole file, or says in one line that too little is left, and
// why (then text is ""). The kernel has never to refuse it a process, at which the Go runtime crashes, or
// to end it. text is the report, and said whether it names the bound.
func (b bound) step(t *testing.T) (text string, said bool) {
	t.Helper()
	set(t, b.dir, b.file, b.most)
	file := filepath.Join(t.TempDir(), "file")
	o := inGroup(b.dir).run(t, "take", "-o", file)
	if n := refused(t, b.dir, b.events, b.event); n != "0" {
		t.Fatalf("%s %d: %s processes were refused or ended; exit code %d, %s", b.file, b.most, n, o.code, o.stderr)
	}
	words := fmt.Sprint(b.file, " of ", b.dir, " is ", b.most)
	if o.code == exitFailed {
		if o.want(t, exitFailed, "too little is left", words); strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s %d: %q", b.file, b.most, o.stderr)
		}
		onlyFile(t, filepath.Dir(file))
		return "", true
	}
	taken(t, o)
	mode0600(t, file)
	text = strings.Join(strings.Fields(o.stdout+readText(t, file)), " ")
	return text, strings.Contains(text, words)
}

// However few process ids are left, the command makes a whole file of what it can
// do with them, or says in one line that they are too few, and why.
func TestFewPids(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	testneed.Slow(t)
	t.Parallel()
	dir, _ := controlGroup(t, "pids")
	lesser := map[string]bool{}
	for _, most := range []int64{60, 44, 30, 24, 19, 14, 10, 6} {
		text, said := bound{dir, "pids.max", most, "pids.events", "max"}.step(t)
		if text == "" {
			lesser["error"] = true
			continue
		}
		if lesser["fewer"] = lesser["fewer"] || said; !said && most < 40 {
			t.Errorf("pids.max %d: the report does not say what is missing: %.1000s", most, text)
		}
		lesser["procfs"] = lesser["procfs"] || strings.Contains(text, "nothing was stopped")
	}
	for _, step := range []string{"fewer", "procfs", "error"} {
		if !lesser[step] {
			t.Errorf("no bound led to: %s", step)
		}
	}
}

// However little memory is left, beside 4,300 threads, the command makes a file of what
// fits, each step down said in the report, or says in one line that it is too little.
func TestLittleMemory(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	testneed.Slow(t)
	needRoot(t)
	testtask.Start(t, testtask.ManyThreads(4300))
	dir, unified := controlGroup(t, "memory")
	b := bound{dir: dir, file: "memory.limit_in_bytes", events: "memory.oom_control", event: "oom_kill"}
	if unified {
		b.file, b.events = "memory.max", "memory.events"
	}
	steps := []string{"only frame-pointer chains are recorded", "no user stacks are recorded", "nothing is stopped"}
	seen := map[string]bool{}
	for _, mib := range []int64{420, 250, 175, 150, 130, 60} {
		b.most = mib << 20
		text, said := b.step(t)
		seen["error"] = seen["error"] || text == ""
		for _, step := range steps {
			seen[step] = seen[step] || said && strings.Contains(text, step)
		}
		if mib == 420 && strings.Contains(text, "little_memory") && !strings.Contains(text, "the machine's memory") {
			t.Errorf("%d MiB are not enough: %.2000s", mib, text)
		}
	}
	for _, step := range append(steps, "error") {
		if !seen[step] {
			t.Errorf("no bound led to: %s", step)
		}
	}
}

// A thread sleeps in a library whose owner has rewritten its table of symbols: 2.7 million functions,
// 62 MiB. To read them would take more memory than is left. The snapshot is kept, and the report says
// what was not read.
func TestHostileSymbolTable(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	testneed.Slow(t)
	needRoot(t)
	lib := sleepsInLibrary(t)
	bloat(t, lib, 2_700_000)
	dir, unified := controlGroup(t, "memory")
	b := bound{dir: dir, file: "memory.limit_in_bytes", most: 300 << 20, events: "memory.oom_control", event: "oom_kill"}
	if unified {
		b.file, b.events = "memory.max", "memory.events"
	}
	if text, _ := b.step(t); !strings.Contains(text, lib+": .dynsym at offset 0x") || !strings.Contains(text, "2700000 functions, and memory for ") {
		t.Errorf("not said: %.2000s", text)
	}
}

// sleepsInLibrary has a process sleep in a library of its own.
func sleepsInLibrary(t *testing.T) (lib string) {
	t.Helper()
	testneed.Program(t, "gcc")
	dir := t.TempDir()
	lib = dir + "/libsleep.so"
	build := func(out, source string, args ...string) {
		write(t, out+".c", []byte(source))
		if text, err := exec.Command("gcc", append([]string{"-o", out, out + ".c"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, text)
		}
	}
	build(lib, "#include <unistd.h>\nvoid sleeps(void) { write(1, \"ready\\n\", 6); pause(); }\n", "-shared", "-fPIC", "-Wl,--build-id")
	build(dir+"/prog", "void sleeps(void);\nint main(void) { sleeps(); }\n", lib, "-Wl,-rpath,"+dir)
	cmd := exec.Command(dir + "/prog")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	return lib
}

// bloat gives a library, in place, a table of n functions to be linked to.
func bloat(t *testing.T, lib string, n int) {
	t.Helper()
	b := read(t, lib)
	le := binary.LittleEndian
	var syms []byte
	for i := range n {
		syms = le.AppendUint64(syms, 1<<48|uint64(elf.STT_FUNC)<<32|1)
		syms = le.AppendUint64(le.AppendUint64(syms, 1<<24+16*uint64(i)), 16)
	}
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(f.Sections, func(s *elf.Section) bool { return s.Type == elf.SHT_DYNSYM })
	header := int64(le.Uint64(b[40:])) + 64*int64(i)
	out, err := os.OpenFile(lib, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	_, err1 := out.WriteAt(le.AppendUint64(le.AppendUint64(nil, uint64(len(b))), uint64(len(syms))), header+24)
	_, err2 := out.WriteAt(syms, int64(len(b)))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
}

// controlGroup makes a control group of a controller for the length of the test, in
// whichever version's hierarchy has it.
func controlGroup(t *testing.T, controller string) (dir string, unified bool) {
	t.Helper()
	needRoot(t)
	root := "/sys/fs/cgroup/" + controller
	if _, err := os.Stat(root + "/cgroup.procs"); err != nil {
		unified, root = true, unifiedRoot(t)
		if err := os.WriteFile(root+"/cgroup.subtree_control", []byte("+"+controller), 0); err != nil {
			needGroups(t, "controller %s: %v", controller, err)
		}
	}
	dir, err := os.MkdirTemp(root, "stackshot-test-")
	if err != nil {
		needGroups(t, "%v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir, unified
}

// unifiedRoot is where the second version's hierarchy is mounted, here if nowhere.
func unifiedRoot(t *testing.T) string {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(root + "/cgroup.controllers"); err == nil {
			return root
		}
	}
	root := t.TempDir()
	if err := unix.Mount("none", root, "cgroup2", 0, ""); err != nil {
		needGroups(t, "mount cgroup2: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(root, 0) })
	return root
}

func needGroups(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("STACKSHOT_REQUIRE_BPF") == "1" {
		t.Fatalf("no control group can be made: "+format, args...)
	}
	t.Skipf("no control group can be made: "+format, args...)
}

func set(t *testing.T, dir, name string, value int64) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), fmt.Append(nil, value), 0); err != nil {
		t.Fatal(err)
	}
}

// inGroup runs the command in control groups, from its first instruction on.
func inGroup(dirs ...string) invocation {
	return invocation{bend: func(c *exec.Cmd) {
		script := `for d; do [ "$d" = -- ] && break; echo 0 > "$d/cgroup.procs" || exit 99; shift; done; shift; exec "$@"`
		c.Path, c.Args = "/bin/sh", append(append(append([]string{"sh", "-c", script, "sh"}, dirs...), "--", program), c.Args[1:]...)
	}}
}

// refused is how often the kernel refused a process, or ended one, for the bound of
// a group.
func refused(t *testing.T, dir, file, line string) string {
	t.Helper()
	text := read(t, filepath.Join(dir, file))
	for l := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(l, line+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("%s has no %s: %s", file, line, text)
	return ""
}

// Limits as a shell's ulimit sets them, each too low for a capture.
var lowLimits = map[string]string{
	"RLIMIT_FSIZE":  "--fsize=1000",
	"RLIMIT_AS":     "--as=1700000000",
	"RLIMIT_DATA":   "--data=250000000",
	"RLIMIT_NOFILE": "--nofile=24",
	"RLIMIT_RTTIME": "--rttime=1000",
}

// bounded has prlimit(1) run the command with limits, soft and hard.
func bounded(t *testing.T, limits []string, bend func(*exec.Cmd)) invocation {
	t.Helper()
	testneed.Program(t, "prlimit")
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Fatal(err)
	}
	return invocation{bend: func(c *exec.Cmd) {
		if bend != nil {
			bend(c)
		}
		c.Path, c.Args = prlimit, slices.Concat([]string{"prlimit"}, limits, c.Args)
	}}
}

// Whoever may lift the limits has a capture that lacks nothing: the soft ones everybody,
// the hard ones CAP_SYS_RESOURCE.
func TestLimitsAreLifted(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	needRoot(t)
	have, err := limits.Capabilities()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, flag := range lowLimits {
		if have&(1<<unix.CAP_SYS_RESOURCE) == 0 {
			flag += ":" // the soft one alone
		}
		all = append(all, flag)
	}
	file := openDir(t) + "/file"
	o := bounded(t, all, nil).run(t, "take", "--json", "-o", file)
	taken(t, o)
	mode0600(t, file)
	for _, word := range []string{`"engine":"procfs"`, "RLIMIT"} {
		if strings.Contains(o.stdout, word) {
			t.Errorf("%s in %s", word, o.stdout)
		}
	}
}

// Whoever may not has one line that names the limit, or a capture without what the limit
// forbids; doctor says the same. The Go runtime does not crash, nothing kills it.
func TestLimitsAreSaid(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	needRoot(t)
	for name, flag := range lowLimits {
		file := openDir(t) + "/file"
		in := bounded(t, []string{flag}, asNobodyWith(capsToStop))
		o, d := in.run(t, "take", "--json", "-o", file), in.run(t, "doctor")
		if name == "RLIMIT_RTTIME" {
			if taken(t, o); !strings.Contains(o.stdout+o.stderr, name+" is 1000 us") || !strings.Contains(d.stdout, name+" is 1000 us") {
				t.Errorf("not said: %s%s\ndoctor: %s", o.stdout, o.stderr, d.stdout)
			}
			continue
		}
		for _, o := range []outcome{o, d} {
			if o.want(t, exitFailed, "too little is left", name+" is "); strings.Count(o.stderr, "\n") != 1 {
				t.Errorf("%s: %.500s", name, o.stderr)
			}
		}
	}
}
