package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"stackshot/internal/bpf"
	"stackshot/internal/panicregion"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// deadMachine writes an ELF core of a machine that has panicked: in mib MiB of memory lies a region in
// which tasks processes of threads threads each are recorded.
func deadMachine(t testing.TB, path string, mib, tasks, threads int) (records int) {
	t.Helper()
	body := recordedTasks(t, tasks, threads)
	symbols := new(strings.Builder)
	for i := range 150_000 {
		fmt.Fprintf(symbols, "%x t some_function_of_the_kernel_%d\n", 0xffffffff81000000+uint64(i)*256, i)
	}
	d := panicregion.Description{Tool: "test", Hostname: "dead", Arch: "x86_64", PageSize: 4096, FirstNS: true, BootEpochNs: 1_795_000_000_000_000_000,
		CPUs: []panicregion.CPU{{CPU: 0}, {CPU: 1}}, Hooks: []string{"vpanic"}, Symbols: symbols.String()}
	packed, err := d.Pack()
	if err != nil {
		t.Fatal(err)
	}
	up := func(n int) int { return (n + 4095) &^ 4095 }
	pages := (4096 + up(len(packed)) + up(len(body))) / 4096
	lists := panicregion.ListPages(pages)
	pages += lists
	descAt := 4096 * (1 + lists)
	image := make([]byte, pages*4096)
	copy(image[descAt:], packed)
	copy(image[descAt+up(len(packed)):], body)
	s := &panicregion.Static{Kind: panicregion.KindPanic, Arch: 62, Region: 7, Generation: 2, BootID: [16]byte{5}, Pages: uint64(pages), ListPages: uint32(lists), Written: 9,
		Sections: []panicregion.Section{
			{Kind: panicregion.SectionDescription, Sum: panicregion.Sum(packed), Off: uint64(descAt), Len: uint64(len(packed))},
			{Kind: panicregion.SectionRecords, Off: uint64(descAt + up(len(packed))), Len: uint64(up(len(body)))},
		}}
	var frames []uint64
	const first = 8 << 20
	for i := range pages { // pairs of frames change places, so that no two are next to each other
		frames = append(frames, uint64(first+(i^1)*4096))
	}
	run := bpf.PanicRun{State: panicregion.StateLeft, Hook: panicregion.HookPanic, Outcome: panicregion.Whole, Cpu: 1, Tid: 100, Tgid: 100, Began: 5e9, Ended: 6e9, BeganBoot: 7e9,
		Bytes: uint64(len(body)), Tasks: uint32(tasks), Threads: uint32(tasks * threads)}
	for i, c := range "Fatal exception" {
		run.Format[i] = int8(c)
	}
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&run)), unsafe.Sizeof(run)/8)
	sum := uint64(0xcbf29ce484222325)
	for _, w := range words[16 : len(words)-1] {
		sum = (sum ^ w) * 0x100000001b3
	}
	run.Sum = sum
	copy(image[panicregion.RunAt:], unsafe.Slice((*byte)(unsafe.Pointer(&run)), unsafe.Sizeof(run)))
	if err := panicregion.PutStatic(image, s); err != nil {
		t.Fatal(err)
	}
	if err := panicregion.PutList(image[4096:], s, panicregion.Runs(frames)); err != nil {
		t.Fatal(err)
	}
	writeCore(t, path, mib, first, frames, image)
	return len(body)
}

func writeCore(t testing.TB, path string, mib int, first uint64, frames []uint64, image []byte) {
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	le := binary.LittleEndian
	head := append([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0}, make([]byte, 8)...)
	head = le.AppendUint16(le.AppendUint16(head, 4), 62)
	head = le.AppendUint32(head, 1)
	head = le.AppendUint64(le.AppendUint64(le.AppendUint64(head, 0), 64), 0)
	head = le.AppendUint32(head, 0)
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} {
		head = le.AppendUint16(head, v)
	}
	head = le.AppendUint32(le.AppendUint32(head, 1), 7) // PT_LOAD
	for _, v := range []uint64{4096, 0, 0, uint64(mib) << 20, uint64(mib) << 20, 4096} {
		head = le.AppendUint64(head, v)
	}
	w.Write(append(head, make([]byte, 4096-len(head))...))
	at := map[uint64]int{}
	for page, phys := range frames {
		at[phys] = page
	}
	other := bytes.Repeat([]byte{0x5a}, 4096)
	for phys := uint64(0); phys < uint64(mib)<<20; phys += 4096 {
		b := other
		if page, ok := at[phys]; ok {
			b = image[page*4096:][:4096]
		}
		w.Write(b)
	}
	if err := w.Flush(); err != nil || first > uint64(mib)<<20 {
		t.Fatal(err)
	}
}

// recordedTasks are the records of processes whose threads have kernel stacks and some KiB of user memory.
func recordedTasks(t testing.TB, tasks, threads int) []byte {
	w := kcdata.NewBuffer(1 << 20)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range tasks {
		id := uint64(100 + i*threads)
		must(w.BeginContainer(kcdata.TypeTask, id))
		snap := kcdata.TaskSnapshot{}
		snap.Pid = int32(id)
		copy(snap.Comm[:], "dead")
		must(w.Struct(kcdata.TypeTaskSnapshot, &snap))
		must(w.Struct(kcdata.TypeLinuxTask, &kcdata.LinuxTask{Tgid: uint32(id)}))
		for j := range threads {
			tid := id + uint64(j)
			must(w.BeginContainer(kcdata.TypeThread, tid))
			must(w.Struct(kcdata.TypeThreadSnapshot, &kcdata.ThreadSnapshot{ThreadID: tid}))
			must(w.Struct(kcdata.TypeLinuxThread, &kcdata.LinuxThread{Tid: uint32(tid), Tgid: uint32(id)}))
			must(w.Uint64s(kcdata.TypeKernStackLR64, []uint64{0xffffffff81000000 + 256*(tid%100_000) + 8, 0xffffffff81100008}))
			must(w.Bytes(kcdata.TypeLinuxMeminfo, bytes.Repeat([]byte{byte(tid), 0}, 1000)))
			must(w.EndContainer(tid))
		}
		must(w.EndContainer(id))
	}
	return slices.Clone(w.Written())
}

// extracted runs the command and gives what it took at most, bytes.
func extracted(t *testing.T, dir string, args ...string) (code int, text string, most int64, took time.Duration) {
	t.Helper()
	forgetPeak(t)
	cmd := exec.Command(program, append([]string{"extract"}, args...)...)
	cmd.Dir = dir
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10, time.Since(began)
}

// What a dump gives: the file, its name and its rights.
func TestExtractCommand(t *testing.T) {
	dir := t.TempDir()
	deadMachine(t, filepath.Join(dir, "vmcore"), 24, 30, 40)
	if _, help, _, _ := extracted(t, dir, "--help"); !strings.Contains(help, "extract CORE") {
		t.Error(help)
	}
	for _, compress := range []string{"zstd", "none"} {
		code, text, _, _ := extracted(t, dir, "vmcore", "--compress", compress)
		if code != exitWhole || !strings.Contains(text, "kernel panic: Fatal exception, on CPU 1") {
			t.Errorf("exit code %d: %s", code, text)
		}
	}
	names, _ := filepath.Glob(filepath.Join(dir, "stackshot-dead-*"))
	if len(names) != 2 || !strings.HasPrefix(filepath.Base(names[0]), "stackshot-dead-20261118T") {
		t.Fatal(names)
	}
	if st, err := os.Stat(names[0]); err != nil || st.Mode() != 0o600 {
		t.Error(st.Mode(), err)
	}
	r := stackshot(t, "report", "--format", "json", "--pid", "100", names[1])
	if !strings.Contains(r.stdout, `"panicked": true`) || !strings.Contains(r.stdout, `"cause": "panic"`) {
		t.Errorf("%.2000s %s", r.stdout, r.stderr)
	}
}

// A dump with 100 MB of records: at no time are more than 64 MiB of memory in use.
func TestExtractOfALargeDump(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	testneed.Slow(t)
	dir := t.TempDir()
	mib := testneed.Length(160, 1024)
	records := deadMachine(t, filepath.Join(dir, "vmcore"), mib, 1100, 40)
	for _, compress := range []string{"zstd", "none"} {
		code, _, most, took := extracted(t, dir, "vmcore", "--compress", compress)
		t.Logf("%s: %d MB of records in %d MiB: %v, %.0f MB/s, at most %d MiB", compress, records>>20, mib, took, float64(mib<<20)/1e6/took.Seconds(), most>>20)
		if code != exitWhole || most > 64<<20 {
			t.Errorf("exit code %d, %d MiB", code, most>>20)
		}
	}
	interruptedExtract(t, dir)
}

// interruptedExtract: a signal while the file is made ends the command soon, and leaves nothing.
func interruptedExtract(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.Command(program, "extract", "vmcore", "--compress", "zlib", "-o", "interrupted")
	cmd.Dir = dir
	var text bytes.Buffer
	cmd.Stderr = &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	making := func() bool { // its file has no name yet
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", cmd.Process.Pid))
		return slices.ContainsFunc(fds, func(fd string) bool {
			to, _ := os.Readlink(fd)
			return strings.HasPrefix(to, dir) && strings.HasSuffix(to, "(deleted)")
		})
	}
	for end := time.Now().Add(time.Minute); !making() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(text.String(), "interrupted: not written: interrupted") {
		t.Errorf("exit code %d after %v, %s", cmd.ProcessState.ExitCode(), time.Since(began), &text)
	}
	if _, err := os.Stat(filepath.Join(dir, "interrupted")); err == nil {
		t.Error("there is a file")
	}
}

// A long search shows what it searches, without what a terminal would obey.
func TestExtractSearchOnTerminal(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	master, slave := openTerminal(t)
	dir := t.TempDir()
	name := filepath.Join(dir, "core\x1b[31m\u202e")
	writeCore(t, name, 1, 0, nil, nil)
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 1 << 40 // of nothing
	for _, at := range []int64{64 + 32, 64 + 40} {
		f.WriteAt(binary.LittleEndian.AppendUint64(nil, size), at)
	}
	if err := f.Truncate(4096 + size); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "extract", name)
	cmd.Dir, cmd.Stderr = dir, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for b := make([]byte, 4096); !bytes.Contains(text, []byte("2 s")); {
		n, err := master.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, b[:n]...)
	}
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	shown := strings.ReplaceAll(string(text), "\x1b[K", "")
	if !strings.Contains(shown, `searching core\x1b[31m\xe2\x80\xae, 2 s`) || strings.ContainsAny(shown, "\x1b\u202e") || cmd.ProcessState.ExitCode() != exitFailed {
		t.Errorf("%q, %v", text, cmd.ProcessState)
	}
}

// What is refused, and with which code; no file is left under any name. A list that nobody could write
// down is no success.
func TestExtractRefuses(t *testing.T) {
	dir := t.TempDir()
	deadMachine(t, filepath.Join(dir, "vmcore"), 24, 3, 2)
	b := read(t, filepath.Join(dir, "vmcore"))
	none := bytes.Replace(b, binary.LittleEndian.AppendUint64(nil, panicregion.HeadMagic), make([]byte, 8), 2)
	none = bytes.ReplaceAll(none, binary.LittleEndian.AppendUint64(nil, panicregion.ListMagic), make([]byte, 8))
	cut := b[:8<<20+3*4096]
	short := none[:12<<20]
	head := b[bytes.Index(b, binary.LittleEndian.AppendUint64(nil, panicregion.HeadMagic)):][:4096]
	for name, data := range map[string][]byte{"none": none, "cut": cut, "short": short, "text": []byte("no core at all\n"), "frames": head} {
		write(t, filepath.Join(dir, name), data)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"none"}, exitFailed, "stackshot: none: no memory of stackshot arm in"},
		{[]string{"cut"}, exitFailed, "pages are damaged, the first: cut: "},
		{[]string{"short"}, exitFailed, "!! the dump: 3073 pages are damaged"}, // the region may have been in them
		{[]string{"text"}, exitFailed, "text"},
		{[]string{"absent"}, exitFailed, "no such file"},
		{[]string{"--list", "none"}, exitFailed, "no memory of stackshot arm"},
		{[]string{"--list", "vmcore"}, exitWhole, "panic: Fatal exception, boot 05000000-"},
		{[]string{"--list", "-o", "x", "vmcore"}, exitUsage, "--list writes no file"},
		{[]string{"--compress", "lzo", "vmcore"}, exitUsage, "zstd, zlib or none"},
		{[]string{"--frames", "text", "vmcore"}, exitFailed, "stackshot: text: frames file: no head"},
		{[]string{"--frames", "absent", "vmcore"}, exitFailed, "stackshot: stat absent: no such file"},
		{[]string{"--frames", "/dev/zero", "vmcore"}, exitFailed, "stackshot: /dev/zero: no frames file: not a regular file"},
		{[]string{"--frames", "frames", "vmcore"}, exitFailed, "frames may be of another boot, or damaged"},
		{[]string{"-o", "nowhere/x", "none"}, exitFailed, "nowhere/x: open directory"}, // before the search
		{[]string{"-o", "/proc/x", "vmcore"}, exitFailed, "/proc"},
		{[]string{}, exitUsage, "arg"},
	} {
		code, text, _, _ := extracted(t, dir, c.args...)
		if code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%q: exit code %d, %s", c.args, code, text)
		}
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	o := invocation{bend: func(c *exec.Cmd) { c.Stdout = full }}.run(t, "extract", "--list", filepath.Join(dir, "vmcore"))
	o.want(t, exitFailed, "write the list: no space left")
	left, _ := filepath.Glob(filepath.Join(dir, "*stackshot*"))
	if len(left) > 0 {
		t.Error(left)
	}
}

func TestWithSuffix(t *testing.T) {
	for path, want := range map[string]string{
		"/a.b/stackshot-x-20261118T010203.000Z.kcdata.zst": "/a.b/stackshot-x-20261118T010203.000Z-live.kcdata.zst",
		"x.kcdata": "x-live.kcdata", "x": "x-live", ".kcdata": "-live.kcdata", "d.kcdata/x.zst": "d.kcdata/x-live.zst", "x.y": "x.y-live",
	} {
		if got := withSuffix(path, "-live"); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}
