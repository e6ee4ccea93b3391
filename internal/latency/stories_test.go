package latency

import "stackshot/kcdata"

// stories are files: of loaded there are golden texts, of the others the text says these words.
var stories = []struct {
	name  string
	build func() []byte
	says  []string
}{
	{"loaded", loaded, nil},
	{"plain", plain, []string{
		"\nstopped for 12 ms, 2 of 2 CPUs; window 11 ms, arrival skew 100 us (CPU 1 last), ", "\natomicity not measured: no thread was read twice\n", "; unwinding not measured (--latency thread)\n",
		"  3   0.0     0.0  0.0   1000   0.0  10000   0.0    0.0     0.0  0.0 1000 12000\n", "\n== SLOWEST TASKS, us\nnot measured (--latency task)\n", "\nno thread in D\n", "\n1 thread sleeping:\nat most CPU  thread\n  2.0 s   0  systemd [1]\n",
	}},
	{"procfs", fromProc, []string{
		"\nnothing was stopped; the capture took 400 ms\n1 of 2 threads ran between their record and a second reading (span 380 ms)\nphases not measured\n", "\nnothing was measured\n",
		"\nrun-queue delay: not in the file\n", "\n1 thread in D (age of 1 unknown):\nat most CPU  thread\nunknown   0  sh [5]\n\n1 thread sleeping (age of 1 unknown)\n",
	}},
	{"nasty", nasty, []string{"\n4294967295 tries; what the others cost is not in the file\n", "\nstopped for 106751d 23h, 2 of 2 CPUs;", "context switches 18,446,744,073,709,551,615\n"}},
	{"empty", empty, []string{"latency of unknown host, engine unknown, isolation unknown: 0 tasks, 0 threads\nThe file does not say how the capture went.\n", "\n== SCHEDULING LATENCY of 0 threads (left out: 0 of our own, 0 of idle CPUs)\n"}},
}

const stateSleeping, stateBlocked, stateIdleTask = 0x1, 0x2, 0x402

// loaded: taken with --latency thread --trace on two CPUs, the second try. The
// unwinder had most of the time, and in it xfs's worker, whose stack is deep.
// One thread ran inside the window. A thread waits for CPU 1 since 40 ms, one is
// in D since 3 minutes.
func loaded() []byte {
	s := newScript()
	s.machine("db7", "trap", "irqoff")
	s.task(0, "swapper", kcdata.TaskIsKernel, nil, role{tid: 0, present: kcdata.ThreadIsIdle})
	s.task(812, "postgres", 0, &kcdata.LatencyTask{TaskUniqueID: 812, Setup: 300, CurTsnap: 700, ThreadDataLoop: 5200, End: 100, Misc: 50},
		role{tid: 812, name: "postgres", state: stateBlocked, slept: 192 * second, delay: 4 * ms, times: 1000, stack: []uint64{0x1000, 0x2000, 0x3000},
			latency: &kcdata.LatencyThread{ThreadID: 812, CurThsnap1: 250, KernelStack: 1900, CurThsnap2: 150, Misc: 120}},
		role{tid: 813, name: "checkpointer", cpu: 1, queued: 40 * ms, delay: 900 * ms, times: 9, stack: []uint64{0x2000},
			latency: &kcdata.LatencyThread{ThreadID: 813, CurThsnap1: 200, KernelStack: 400, CurThsnap2: 100, Misc: 80}},
	)
	s.task(90, "xfs-conv", kcdata.TaskIsKernel, &kcdata.LatencyTask{TaskUniqueID: 90, Setup: 200, CurTsnap: 300, ThreadDataLoop: 9000, End: 90},
		role{tid: 90, name: "xfs-conv", state: stateSleeping, slept: 20 * ms, delay: 7 * ms, times: 7000, stack: []uint64{0x9999},
			latency: &kcdata.LatencyThread{ThreadID: 90, CurThsnap1: 300, KernelStack: 8200, CurThsnap2: 200, Misc: 100}})
	s.task(91, "kworker/0:1", kcdata.TaskIsKernel, &kcdata.LatencyTask{TaskUniqueID: 91, ThreadDataLoop: 700},
		role{tid: 91, name: "kworker/0:1", state: stateIdleTask, slept: 5 * second})
	s.task(4900, "stackshot", kcdata.TaskIsSelf, nil, role{tid: 4900, name: "stackshot", present: kcdata.ThreadIsSelf})
	s.cpus()
	s.names("__schedule", "rpc_wait_bit_killable", "nfs_wait")
	s.do(
		s.Struct(kcdata.TypeLatencyInfo, kcdata.LatencyCollection{Version: 2, SetupMt: 4200 * us}),
		s.Struct(kcdata.TypeLinuxCapture, kcdata.LinuxCapture{
			StopNs: stop, StoppedNs: 1850 * us, WindowNs: 700 * us, ArrivalNs: 36 * us, ReleaseNs: 9 * us, ElapsedNs: 31 * ms,
			CensusNs: 45 * us, MaxPauseNs: 100 * ms, Tries: 2, StopBroken: 1,
		}),
		s.Struct(kcdata.TypeLinuxAtomicity, kcdata.LinuxAtomicity{
			Compared: 4085, Ran: 2, Gone: 1, Missed: 3, Method: kcdata.AtomicityInWindow, SpanNs: 690 * us, VerifyNs: 60 * us,
		}),
		s.StructArray(kcdata.TypeLinuxRan, []kcdata.LinuxRan{{Tid: 7, Tgid: 6, Switches: 1, RuntimeNs: 300}, {Tid: 813, Tgid: 812, Switches: 2, RuntimeNs: 15 * us}}),
		s.StructArray(kcdata.TypeLinuxPhases, loadedPhases()),
		s.StructArray(kcdata.TypeLinuxArena, []kcdata.LinuxArena{
			{Cluster: 0, Size: 4 << 20, Used: 1 << 20, SpillIn: 64 << 10, FreedSize: 900 << 10, Reused: 880 << 10, Overhead: 20 << 10, Entries: 3, Allocs: 71},
			{Cluster: 1, Size: 2 << 20, Used: 2 << 20, SpillOut: 64 << 10, Allocs: 64, Refused: 2},
		}),
		s.StructArray(kcdata.TypeLinuxTry, []kcdata.LinuxTry{
			{Outcome: kcdata.TryNoSpace, StoppedNs: 900 * us, WindowNs: 600 * us, RestNs: 9 * ms, BufferSize: 3 << 20, BufferUsed: 3 << 20},
			{Outcome: kcdata.TryWhole, StoppedNs: 950 * us, WindowNs: 700 * us, BufferSize: 6 << 20, BufferUsed: 3100 << 10},
		}),
		s.StructArray(kcdata.TypeLinuxTrace, []kcdata.LinuxTrace{
			{AtNs: stop + 12_345, CPU: 1, Place: kcdata.TraceChunk, Datum: 65536}, {AtNs: stop, CPU: 0, Place: kcdata.TraceTaken},
			{AtNs: stop + 7, CPU: 0, Place: kcdata.TraceArrived, Datum: 0x102}, {AtNs: stop + 9000, Place: kcdata.TraceItemEnd, Datum: 3 << 32},
			{AtNs: stop + 9001, Place: kcdata.TraceItemEnd, Datum: 9}, {AtNs: stop + 2*ms, CPU: 0, Place: 99, Datum: 1<<64 - 1},
		}))
	return s.bytes()
}

func loadedPhases() []kcdata.LinuxPhases {
	have := uint32(kcdata.PhasesHaveUnwind | kcdata.PhasesHaveCycles)
	return []kcdata.LinuxPhases{
		{CPU: 0, Present: have, TotalNs: 950 * us, EnterNs: 5 * us, ArrivalNs: 36 * us, HoldNs: 4 * us, CensusNs: 45 * us, QueueNs: 0,
			RecordNs: 700 * us, DrainNs: 70 * us, VerifyNs: 60 * us, ReleaseNs: 20 * us, ExitNs: 10 * us, UnwindNs: 520 * us, Cycles: 2_850_000, Instrs: 3_990_000},
		{CPU: 1, Present: have, TotalNs: 910 * us, EnterNs: 5 * us, ArrivalNs: 0, HoldNs: 4 * us, QueueNs: 30 * us,
			RecordNs: 780 * us, DrainNs: 0, VerifyNs: 60 * us, ReleaseNs: 0, ExitNs: 19 * us, UnwindNs: 610 * us, Cycles: 2_730_000, Instrs: 3_600_000},
	}
}

// plain: --latency off, one CPU, one try; nobody was read twice.
func plain() []byte {
	s := newScript()
	s.machine("box", "pull", "fifo")
	s.task(1, "systemd", 0, nil, role{tid: 1, name: "systemd", state: stateSleeping, slept: 2 * second, delay: ms, times: 50})
	s.cpus()
	s.do(
		s.Struct(kcdata.TypeLinuxCapture, kcdata.LinuxCapture{StopNs: stop, StoppedNs: 12 * ms, WindowNs: 11 * ms, ArrivalNs: 100 * us, Tries: 1}),
		s.StructArray(kcdata.TypeLinuxPhases, []kcdata.LinuxPhases{{CPU: 3, TotalNs: 12 * ms, CensusNs: ms, RecordNs: 10 * ms}}))
	return s.bytes()
}

// fromProc: nothing was stopped, so there are no phases, and no clocks for ages.
func fromProc() []byte {
	s := newScript()
	s.machine("box", "procfs", "none")
	s.task(5, "sh", 0, nil, role{tid: 5, name: "sh", state: stateBlocked}, role{tid: 6, name: "sh", state: stateSleeping})
	s.do(
		s.Struct(kcdata.TypeLinuxCapture, kcdata.LinuxCapture{ElapsedNs: 400 * ms, Tries: 1}),
		s.Struct(kcdata.TypeLinuxAtomicity, kcdata.LinuxAtomicity{Compared: 2, Ran: 1, Method: kcdata.AtomicityAfter, SpanNs: 380 * ms}))
	return s.bytes()
}

const nastyName = "\x1b[2J\r\u202egnp\u2066\xff\xc3("

// nasty: every name tries to be something else.
func nasty() []byte {
	s := newScript()
	s.machine(nastyName, nastyName, nastyName)
	s.task(66, nastyName, 0, &kcdata.LatencyTask{End: 1<<64 - 1, Setup: 1<<64 - 1},
		role{tid: 67, name: "t" + nastyName, state: stateBlocked, slept: second, delay: 1<<64 - 1, times: 1, stack: []uint64{0x1000},
			latency: &kcdata.LatencyThread{KernelStack: 1<<64 - 1}})
	s.names(nastyName)
	s.cpus()
	s.do(s.String(kcdata.TypeLinuxRequest, nastyName),
		s.Struct(kcdata.TypeLinuxCapture, kcdata.LinuxCapture{StopNs: stop, StoppedNs: 1<<64 - 1, Tries: 1<<32 - 1}),
		s.StructArray(kcdata.TypeLinuxRan, []kcdata.LinuxRan{{Tid: 67, Tgid: 66, Switches: 1<<64 - 1}}),
		s.Struct(kcdata.TypeLinuxAtomicity, kcdata.LinuxAtomicity{Ran: 1}),
		s.StructArray(kcdata.TypeLinuxPhases, []kcdata.LinuxPhases{{TotalNs: 1, RecordNs: 1<<64 - 1, EnterNs: 1<<64 - 1}, {TotalNs: 1<<64 - 1}}))
	return s.bytes()
}

// empty holds nothing but its begin and its end.
func empty() []byte { return newScript().bytes() }
