package kcdata

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stackshot/internal/testheap"
)

// snapshotFile writes a file that holds every record ParseSnapshot knows. A
// failed write panics: the buffer is large enough.
func snapshotFile() []byte {
	w := NewWriter(make([]byte, 1<<16))
	must := func(errs ...error) {
		for _, err := range errs {
			if err != nil {
				panic(err)
			}
		}
	}
	strs := []byte("\x00vfs_read\x00nfs\x00do_sys\x00/a\x00")
	must(w.Begin(MagicStackshot),
		w.Define(TypeLinuxMachine),
		w.Struct(TypeLinuxMachine, LinuxMachine{RealtimeNs: 7, PidNSIsFirst: 1}),
		w.Uint64Desc("stackshot_in_flags", 5),
		w.String(TypeLinuxHostname, "db7"), w.String(TypeLinuxRelease, "6.18.0"), w.String(TypeOSVersion, "#1 SMP"),
		w.String(TypeLinuxArch, "x86_64"), w.String(TypeLinuxBootID, "b-o-o-t"), w.String(TypeBootArgs, "quiet"),
		w.String(TypeLinuxEngine, "trap"), w.String(TypeLinuxIsolation, "irqoff"), w.String(TypeLinuxRequest, "--pid 7"),
		w.String(TypeLinuxToolVersion, "1"), w.String(TypeLinuxLoadavg, "1 2 3"), w.String(TypeLinuxMeminfo, "MemTotal: 1 kB"), w.String(TypeLinuxPressure, "cpu some"),
		w.Bytes(TypeKernPageSize, []byte{0, 16, 0, 0}), w.Bytes(TypeLinuxKernelBuild, []byte{1, 2, 3}),
		w.Struct(TypeTimebase, Timebase{1, 1}),
		w.StructArray(TypeLinuxCPU, []LinuxCPU{{CPU: 0, RqClock: 9}, {CPU: 5}}),
		w.StructArray(TypeLinuxSymbol, []LinuxSymbol{{Addr: 0x20, Name: 14, Offset: 3}, {Addr: 0x10, Name: 1, Module: 10, Size: 8}, {Addr: 0x30, Name: 9999}}),
		w.StructArray(TypeLinuxModule, []LinuxModule{{Addr: 0x1000, Size: 64, Name: 10, BuildIDLen: 2, BuildID: [20]byte{0xab, 0xcd}}}),
	)
	task := TaskSnapshot{Pid: 7}
	copy(task.Comm[:], "postgres")
	exe := LinuxTaskExe{Ino: 3}
	copy(exe.Name[:], "postgres")
	must(w.BeginContainer(TypeTask, 7), w.Struct(TypeTaskSnapshot, task), w.Struct(TypeLinuxTask, LinuxTask{Tgid: 7, Present: TaskHasIDs}),
		w.Struct(TypeLinuxTaskMemory, LinuxTaskMemory{RssAnon: 4096}), w.Struct(TypeLinuxTaskNS, LinuxTaskNS{Pid: 1}), w.Struct(TypeLinuxTaskExe, exe),
		w.String(TypeLinuxExePath, "/bin/pg"), w.Bytes(TypeLinuxCmdline, []byte("pg\x00\x00-D\x00")), w.String(TypeLinuxCgroupPath, "/a"), w.String(TypeLinuxMemoryCgroup, "/m"),
		w.String(TypeLinuxEnrichFailed, "x: no"), w.String(TypeLinuxEnrichFailed, "y: no"),
		w.StructArray(TypeLinuxMapping, []LinuxMapping{{Start: 0x70, End: 0x80, Path: 1, BuildIDLen: 1, BuildID: [20]byte{9}}}), w.String(TypeLinuxPerfMap, "/tmp/perf-7.map"),
		w.Struct(TypeLinuxMapWalk, LinuxMapWalk{Flags: MapWalkWriter, Found: 1}),
		w.StructArray(TypeLinuxUserSymbol, []LinuxUserSymbol{{Addr: 0x78, Name: 9999}, {Addr: 0x77, Name: 9, Module: 1, Offset: 2, Line: 3}, {Addr: 0x77, Name: 14, File: 1}}),
		w.Bytes(TypeLinuxMapStrings, []byte("\x00/bin/pg\x00main\x00run\x00")),
		w.BeginContainer(TypeThread, 8), w.Struct(TypeThreadSnapshot, ThreadSnapshot{ThreadID: 8}), w.Bytes(TypeThreadName, append([]byte("wal"), make([]byte, 61)...)),
		w.Struct(TypeCPUTimes, CPUTimes{UserUsec: 1}), w.Struct(TypeLinuxThread, LinuxThread{Tid: 8, State: 2}),
		w.Uint64s(TypeKernStackLR64, []uint64{0x10, 0x20}), w.Uint64s(TypeUserStackLR64, []uint64{0x77}),
		w.Bytes(TypeLinuxUserHow, []byte{UserFrameRegs}), w.Struct(TypeLinuxUserWalk, LinuxUserWalk{Links: 1}),
		w.StructArray(TypeLinuxUserChain, []LinuxUserLink{{1, 2}}), w.Bytes(TypeLinuxUserBytes, UserBytes{1, []byte{5}}.Append(nil)),
		w.Struct(TypeLinuxSyscall, LinuxSyscall{Nr: 74}), w.Struct(TypeLinuxThreadIO, LinuxThreadIO{Rchar: 1}),
		w.String(TypeLinuxWchan, "ep_poll"), w.StructArray(TypeLinuxRegisters, []LinuxRegister{{7}, {8}}), w.Struct(TypeLinuxDelays, LinuxDelays{Blkio: 1}), w.Struct(TypeLinuxSignals, LinuxSignals{Blocked: 1}),
		w.Struct(TypeLinuxSample, LinuxSample{AtNs: 5, CPU: 1}), w.Struct(TypeLatencyInfoThread, LatencyThread{ThreadID: 8, KernelStack: 2}),
		w.StructArray(TypeLinuxThreadNS, []LinuxThreadNS{{1, 2}, {3, 4}}),
		w.Struct(TypeLinuxWait, LinuxWait{Kind: LockMutex, Lock: 3}), w.StructArray(TypeLinuxFutex, []LinuxFutex{{Addr: 4}, {Addr: 5, Around: [40]byte{16: 1}}}),
		w.StructArray(TypeLinuxFile, []LinuxFile{{Fd: 3, Kind: FilePipe}, {Fd: 4, Kind: FileSocket}}), w.StructArray(TypeLinuxSocket, []LinuxSocket{{Fd: 4, Family: 2}}),
		w.BeginContainer(0x4242, 1), w.String(TypeThreadName, "not the thread's"), w.EndContainer(1),
		w.EndContainer(8), w.StructArray(TypeThreadWaitinfo, []ThreadWaitinfo{{Owner: 9, Waiter: 8, Context: 0x40, WaitType: HintKernelMutex}}), w.Struct(TypeLatencyInfoTask, LatencyTask{TaskUniqueID: 7, End: 1}), w.EndContainer(7))
	gone := TransitioningTaskSnapshot{Pid: 9}
	copy(gone.Comm[:], "gone")
	must(w.BeginContainer(TypeTransitioningTask, 9), w.Struct(TypeTransitioningSnapshot, gone), w.EndContainer(9),
		w.Bytes(TypeLinuxStrings, strs), w.String(0x4cff, "unknown"),
		w.Struct(TypeLinuxCapture, LinuxCapture{StoppedNs: 4}), w.Struct(TypeDuration, Duration{}),
		w.String(TypeLinuxWarning, "rt: no FIFO"), w.String(TypeLinuxWarning, "plain words: here"),
		w.StructArray(TypeLinuxLeftOut, []LinuxLeftOut{{Tgid: 3, Reason: LeftOutMaxPause}}),
		w.StructArray(TypeLatencyInfoCPU, []LatencyCPU{{}}), w.Struct(TypeLatencyInfo, LatencyCollection{Version: 2, MainCPU: 1}),
		w.Struct(TypeLinuxAtomicity, LinuxAtomicity{Compared: 5, Ran: 1}), w.Struct(TypeLinuxUserTaken, LinuxUserTaken{Threads: 4}), w.Struct(TypeLinuxWaitTaken, LinuxWaitTaken{Threads: 6}),
		w.Struct(TypeLinuxFilesTaken, LinuxFilesTaken{Files: 2}), w.StructArray(TypeLinuxEnd, []LinuxEnd{{Tgid: 9, Fd: 5}}), w.StructArray(TypeLinuxFileLock, []LinuxFileLock{{Number: 1}}),
		w.StructArray(TypeLinuxMount, []LinuxMount{{Dev: 7, FSType: [32]byte{'e'}}}), w.StructArray(TypeLinuxDevice, []LinuxDevice{{Dev: 8, Name: [32]byte{'v'}}}), w.StructArray(TypeLinuxFUSE, []LinuxFUSE{{Dev: 9, Tid: 8}}),
		w.Struct(TypeLinuxCgroupsTaken, LinuxCgroupsTaken{Groups: 1, Above: 1}), w.Struct(TypeLinuxPanic, LinuxPanic{Cause: PanicByPanic, Tid: 8}),
		w.StructArray(TypeLinuxCgroup, []LinuxCgroup{{Version: 2, Parent: CgroupNoParent, Flags: CgroupAbove}, {Version: 2, Path: 21, Present: CgroupHasMax, Max: 7}}),
		w.StructArray(TypeLinuxRan, []LinuxRan{{Tid: 8, Tgid: 7, Switches: 1}}),
		w.StructArray(TypeLinuxPhases, []LinuxPhases{{CPU: 0, TotalNs: 3}, {CPU: 1, TotalNs: 4}}), w.StructArray(TypeLinuxArena, []LinuxArena{{Cluster: 1, Used: 2}}),
		w.StructArray(TypeLinuxTry, []LinuxTry{{Outcome: TryWhole}}), w.StructArray(TypeLinuxTrace, []LinuxTrace{{AtNs: 1, Place: TraceTaken}}),
		w.End())
	return w.Written()
}

func wantSnapshot() *Snapshot {
	task := &Task{
		ID: 7, Name: "postgres", HasSnapshot: true, HasLinux: true, Linux: LinuxTask{Tgid: 7, Present: TaskHasIDs},
		Memory: &LinuxTaskMemory{RssAnon: 4096}, NS: &LinuxTaskNS{Pid: 1}, Exe: &LinuxTaskExe{Ino: 3},
		ExePath: "/bin/pg", Cmdline: []string{"pg", "", "-D"}, Cgroup: "/a", MemoryCgroup: "/m", EnrichFailed: []string{"x: no", "y: no"},
		Mappings: []Mapping{{LinuxMapping{Start: 0x70, End: 0x80, Path: 1, BuildIDLen: 1, BuildID: [20]byte{9}}, "/bin/pg", []byte{9}}}, PerfMap: "/tmp/perf-7.map", MapWalk: &LinuxMapWalk{Flags: MapWalkWriter, Found: 1},
		UserSymbols: &UserSymbolTable{
			funcs: map[userKey][]UserFunction{{addr: 0x77}: {{"main", "/bin/pg", 2, "", 3}, {"run", "", 0, "/bin/pg", 0}}}, most: 2,
		},
		Threads: []*Thread{{
			ID: 8, Name: "wal", HasSnapshot: true, Snapshot: ThreadSnapshot{ThreadID: 8}, Times: &CPUTimes{UserUsec: 1},
			HasLinux: true, Linux: LinuxThread{Tid: 8, State: 2}, Kernel: []uint64{0x10, 0x20}, User: []uint64{0x77},
			UserHow: []byte{UserFrameRegs}, UserWalk: &LinuxUserWalk{Links: 1}, UserChain: []LinuxUserLink{{1, 2}}, UserBytes: []UserBytes{{1, []byte{5}}},
			Syscall: &LinuxSyscall{Nr: 74}, IO: &LinuxThreadIO{Rchar: 1}, Delays: &LinuxDelays{Blkio: 1},
			Signals: &LinuxSignals{Blocked: 1}, NS: []LinuxThreadNS{{1, 2}, {3, 4}}, Wchan: "ep_poll", Registers: []uint64{7, 8},
			Wait: &LinuxWait{Kind: LockMutex, Lock: 3}, Futexes: []LinuxFutex{{Addr: 4}, {Addr: 5, Around: [40]byte{16: 1}}},
			Files: []LinuxFile{{Fd: 3, Kind: FilePipe}, {Fd: 4, Kind: FileSocket}}, Sockets: []LinuxSocket{{Fd: 4, Family: 2}},
			Sample: &LinuxSample{AtNs: 5, CPU: 1}, Latency: &LatencyThread{ThreadID: 8, KernelStack: 2},
		}},
		Latency: &LatencyTask{TaskUniqueID: 7, End: 1}, WaitInfo: []ThreadWaitinfo{{Owner: 9, Waiter: 8, Context: 0x40, WaitType: HintKernelMutex}},
	}
	task.Snapshot.Pid = 7
	copy(task.Snapshot.Comm[:], "postgres")
	copy(task.Exe.Name[:], "postgres")
	gone := &Task{ID: 9, Transitioning: true, Name: "gone", Exiting: &TransitioningTaskSnapshot{Pid: 9}}
	copy(gone.Exiting.Comm[:], "gone")
	top := &Cgroup{LinuxCgroup: LinuxCgroup{Version: 2, Parent: CgroupNoParent, Flags: CgroupAbove}}
	return &Snapshot{
		CgroupsTaken: &LinuxCgroupsTaken{Groups: 1, Above: 1},
		Cgroups:      []*Cgroup{top, {LinuxCgroup: LinuxCgroup{Version: 2, Path: 21, Present: CgroupHasMax, Max: 7}, Path: "/a", Above: top}},
		HasMachine:   true, Machine: LinuxMachine{RealtimeNs: 7, PidNSIsFirst: 1}, HasCapture: true, Capture: LinuxCapture{StoppedNs: 4}, Panic: &LinuxPanic{Cause: PanicByPanic, Tid: 8},
		Hostname: "db7", Release: "6.18.0", Version: "#1 SMP", Arch: "x86_64", BootID: "b-o-o-t", BootArgs: "quiet", Engine: "trap",
		Isolation: "irqoff", Request: "--pid 7", ToolVersion: "1", Loadavg: "1 2 3", Meminfo: "MemTotal: 1 kB", Pressure: "cpu some",
		PageSize: 4096, KernelBuild: []byte{1, 2, 3}, Timebase: &Timebase{1, 1}, Duration: &Duration{},
		CPUs: []LinuxCPU{{CPU: 0, RqClock: 9}, {CPU: 5}}, LatencyCPUs: []LatencyCPU{{}},
		Latency: &LatencyCollection{Version: 2, MainCPU: 1}, Atomicity: &LinuxAtomicity{Compared: 5, Ran: 1}, UserTaken: &LinuxUserTaken{Threads: 4}, WaitTaken: &LinuxWaitTaken{Threads: 6},
		FilesTaken: &LinuxFilesTaken{Files: 2}, Ends: []LinuxEnd{{Tgid: 9, Fd: 5}}, FileLocks: []LinuxFileLock{{Number: 1}},
		Mounts: []LinuxMount{{Dev: 7, FSType: [32]byte{'e'}}}, Devices: []LinuxDevice{{Dev: 8, Name: [32]byte{'v'}}}, FUSE: []LinuxFUSE{{Dev: 9, Tid: 8}},
		Ran: []LinuxRan{{Tid: 8, Tgid: 7, Switches: 1}}, Phases: []LinuxPhases{{CPU: 0, TotalNs: 3}, {CPU: 1, TotalNs: 4}},
		Arenas: []LinuxArena{{Cluster: 1, Used: 2}}, Tries: []LinuxTry{{Outcome: TryWhole}}, Trace: []LinuxTrace{{AtNs: 1, Place: TraceTaken}},
		Warnings: []Warning{{"rt", "no FIFO"}, {"", "plain words: here"}}, LeftOut: []LinuxLeftOut{{Tgid: 3, Reason: LeftOutMaxPause}},
		Modules: []Module{{Name: "nfs", Addr: 0x1000, Size: 64, BuildID: []byte{0xab, 0xcd}}},
		Tasks:   []*Task{task, gone},
	}
}

// cmpSnapshot leaves the kernel's symbol table to its own test.
var cmpSnapshot = cmp.Options{
	cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Symbols" }, cmp.Ignore()),
	cmp.AllowUnexported(UserSymbolTable{}, userKey{}),
}

func TestParseSnapshot(t *testing.T) {
	s, err := ParseSnapshot(snapshotFile())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(wantSnapshot(), s, cmpSnapshot); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for addr, want := range map[uint64]Symbol{0x10: {"vfs_read", "nfs", 0, 8}, 0x20: {"do_sys", "", 3, 0}} {
		if got, ok := s.Symbols.Name(addr); !ok || got != want {
			t.Errorf("Name(%#x) = %v, %v; want %v", addr, got, ok, want)
		}
	}
	for _, addr := range []uint64{0x30, 0x11, 0} {
		if got, ok := s.Symbols.Name(addr); ok {
			t.Errorf("Name(%#x) = %v, want none", addr, got)
		}
	}
	if cpu, ok := s.CPU(5); !ok || cpu.CPU != 5 {
		t.Errorf("CPU(5) = %v, %v", cpu, ok)
	}
	if s.ThreadCount() != 1 || s.Tasks[0].Exe.FileName() != "postgres" || s.Tasks[0].Threads[0].IsIdle() {
		t.Errorf("threads %d, exe %q", s.ThreadCount(), s.Tasks[0].Exe.FileName())
	}
}

// Stacks of each form that Apple's kernels have written: addresses alone, or with stack pointers, of 32 and of
// 64 bits. Elements of another size are none of these.
func TestStacksOfEachForm(t *testing.T) {
	for _, c := range []struct {
		kernel, user Type
		element      any // three of these are a stack
		want         string
	}{
		{TypeKernStackLR64, TypeUserStackLR64, []uint64{1 << 40, 2, 3}, "[1099511627776 2 3]"},
		{TypeKernStackFrame64, TypeUserStackFrame64, []uint64{1 << 40, 91, 2, 92, 3, 93}, "[1099511627776 2 3]"},
		{TypeKernStackLR, TypeUserStackLR, []uint32{1 << 30, 2, 3}, "[1073741824 2 3]"},
		{TypeKernStackFrame, TypeUserStackFrame, []uint32{1 << 30, 91, 2, 92, 3, 93}, "[1073741824 2 3]"},
	} {
		b := packed(c.element)
		for _, extra := range []int{0, 8} {
			s, err := ParseSnapshot(buffer(t, MagicStackshot, func(w ItemWriter) {
				n := len(b)/3 + extra
				list := append(b[:len(b):len(b)], make([]byte, 3*extra)...)
				ok(t, errors.Join(w.BeginContainer(TypeTask, 1), w.BeginContainer(TypeThread, 2),
					w.Array(c.kernel, n, 3, list), w.Array(c.user, n, 3, list), w.EndContainer(2), w.EndContainer(1)))
			}))
			ok(t, err)
			th := s.Tasks[0].Threads[0]
			kernel, user, problems := fmt.Sprint(th.Kernel), fmt.Sprint(th.User), len(s.Problems)
			if extra == 0 && (kernel != c.want || user != c.want || problems > 0) || extra > 0 && (len(th.Kernel)+len(th.User) > 0 || problems != 2) {
				t.Errorf("%#x, %d bytes more: %s, %s, %q", uint32(c.kernel), extra, kernel, user, s.Problems)
			}
		}
	}
}

// TestParseSnapshotKnowsEveryField fails when a field is added to the model
// that snapshotFile does not fill: TestParseSnapshot would not see it.
func TestParseSnapshotKnowsEveryField(t *testing.T) {
	w := wantSnapshot()
	unset := map[string]bool{"Delta": true, "Partial": true, "Symbols": true, "Problems": true, "Transitioning": true, "Exiting": true}
	for _, v := range []reflect.Value{reflect.ValueOf(*w), reflect.ValueOf(*w.Tasks[0]), reflect.ValueOf(*w.Tasks[0].Threads[0])} {
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Field(i).IsZero() && !unset[name] {
				t.Errorf("%s.%s is not in the test file", v.Type(), name)
			}
		}
	}
}

// TestParseSnapshotCutShort cuts the file at every byte: what came before the
// cut is still there, and the error says that there was one.
func TestParseSnapshotCutShort(t *testing.T) {
	whole := snapshotFile()
	for n := range len(whole) {
		s, err := ParseSnapshot(whole[:n])
		var format *FormatError
		if !errors.As(err, &format) {
			t.Fatalf("%d of %d bytes: error %v", n, len(whole), err)
		}
		if (s == nil) != (n < 16) {
			t.Fatalf("%d of %d bytes: snapshot %v", n, len(whole), s)
		}
		if s != nil && (len(s.Problems) != 1 || !strings.Contains(s.Problems[0], "breaks off")) {
			t.Fatalf("%d of %d bytes: problems %q", n, len(whole), s.Problems)
		}
	}
}

func TestParseSnapshotNamesContradictions(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(w *Writer) error
		want  string
	}{
		{"task twice", func(w *Writer) error {
			return errors.Join(w.BeginContainer(TypeTask, 7), w.EndContainer(7), w.BeginContainer(TypeTransitioningTask, 7), w.EndContainer(7))
		}, "task 7 is in the file more than once"},
		{"thread twice", func(w *Writer) error {
			return errors.Join(w.BeginContainer(TypeTask, 7), w.BeginContainer(TypeThread, 9), w.EndContainer(9), w.EndContainer(7),
				w.BeginContainer(TypeTask, 8), w.BeginContainer(TypeThread, 9), w.EndContainer(9), w.EndContainer(8))
		}, "thread 9 of task 8 is in the file already, in task 7"},
		{"thread outside", func(w *Writer) error {
			return errors.Join(w.BeginContainer(TypeThread, 9), w.EndContainer(9))
		}, "container 0x904 id 9 stands where no such container may stand"},
		{"empty record", func(w *Writer) error { return w.Bytes(TypeLinuxSymbol, nil) }, ""},
		{"tiny elements", func(w *Writer) error { return w.Array(TypeLinuxCPU, 1, 64, make([]byte, 64)) }, fmt.Sprintf("array of 0x4c08 in the machine's part: elements of 1 bytes; the smallest version has %d", SizeOf(LinuxCPU{}))},
		{"stack of halves", func(w *Writer) error {
			return errors.Join(w.BeginContainer(TypeTask, 7), w.BeginContainer(TypeThread, 9),
				w.Array(TypeKernStackLR64, 4, 2, make([]byte, 8)), w.EndContainer(9), w.EndContainer(7))
		}, "array of 0x914 in thread 9 of task 7: elements of 4 bytes are not addresses"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWriter(make([]byte, 4096))
			if err := errors.Join(w.Begin(MagicStackshot), c.write(w), w.End()); err != nil {
				t.Fatal(err)
			}
			s, err := ParseSnapshot(w.Written())
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(s.Problems, "; "); got != c.want {
				t.Errorf("problems %q, want %q", got, c.want)
			}
		})
	}
}

// TestParseSnapshotBoundsProblems: a hostile file is not answered with a
// million sentences.
func TestParseSnapshotBoundsProblems(t *testing.T) {
	w := NewWriter(make([]byte, 1<<20))
	errs := []error{w.Begin(MagicStackshot)}
	for range 5000 {
		errs = append(errs, w.BeginContainer(TypeTask, 1), w.EndContainer(1))
	}
	if err := errors.Join(append(errs, w.End())...); err != nil {
		t.Fatal(err)
	}
	s, err := ParseSnapshot(w.Written())
	if err != nil || len(s.Tasks) != 5000 || len(s.Problems) != maxProblems+1 || s.Problems[maxProblems] != "4899 more problems" {
		t.Errorf("%v, %d tasks, %d problems, last %q", err, len(s.Tasks), len(s.Problems), s.Problems[len(s.Problems)-1])
	}
}

func TestParseSnapshotRefusesOthers(t *testing.T) {
	w := NewWriter(make([]byte, 64))
	if err := errors.Join(w.Begin(MagicCrashinfo), w.End()); err != nil {
		t.Fatal(err)
	}
	if s, err := ParseSnapshot(w.Written()); s != nil || !errors.Is(err, ErrNotStackshot) {
		t.Errorf("crashinfo: %v, %v", s, err)
	}
}

// FuzzParseSnapshot: no bytes panic, and a snapshot without an error is one
// whose every list is sound to walk.
func FuzzParseSnapshot(f *testing.F) {
	f.Add(snapshotFile())
	f.Fuzz(func(t *testing.T, b []byte) {
		var s *Snapshot
		var err error
		// 48 bytes make a thread, which has 600.
		testheap.Bound(t, 64<<20+40*int64(len(b)), fmt.Sprintf("a file of %d bytes", len(b)), func() { s, err = ParseSnapshot(b) })
		if s == nil {
			if err == nil {
				t.Fatal("neither a snapshot nor an error")
			}
			return
		}
		for _, task := range s.Tasks {
			for _, th := range task.Threads {
				for _, a := range th.Kernel {
					s.Symbols.Name(a)
				}
			}
		}
		if err == nil && len(s.Problems) > maxProblems+1 {
			t.Fatalf("%d problems", len(s.Problems))
		}
	})
}

func BenchmarkParseSnapshot(b *testing.B) {
	w := NewWriter(make([]byte, 1<<22))
	errs := []error{w.Begin(MagicStackshot)}
	stack := make([]uint64, 12)
	for id := range uint64(1000) {
		errs = append(errs, w.BeginContainer(TypeTask, id), w.Struct(TypeLinuxTask, LinuxTask{}), w.BeginContainer(TypeThread, id),
			w.Struct(TypeThreadSnapshot, ThreadSnapshot{}), w.Struct(TypeLinuxThread, LinuxThread{}), w.Uint64s(TypeKernStackLR64, stack),
			w.EndContainer(id), w.EndContainer(id))
	}
	if err := errors.Join(append(errs, w.End())...); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(w.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseSnapshot(w.Written()); err != nil {
			b.Fatal(err)
		}
	}
}
