package snapshot

import (
	"fmt"
	"reflect"
	"testing"

	"stackshot/kcdata"
)

// A pair is one task, and with x one thread, as pull and as procfs saw it.
type pair struct {
	pull, proc *kcdata.Snapshot
	a, b       *kcdata.Task
	x, y       *kcdata.Thread // nil for what belongs to the task
	still      bool           // nothing of it ran from the first capture to the second
}

// A row says how one field of one record is compared. What bit guards counts
// only where both files set it; "" of why is plain equality.
type row struct {
	bit   uint64 // presence bit of the record; 0: the record's own presence
	moves bool   // changes while the task runs: compared for those that stood still
	how   func(c *pair, p, q reflect.Value) string
	why   string // of a tolerance or an exemption
}

func same(bit uint64) row  { return row{bit: bit, how: equal} }
func still(bit uint64) row { return row{bit: bit, moves: true, how: equal} }

// exempt fields stand in one file only; other says what holds them to the truth.
func exempt(why string) row { return row{why: why} }

func zero() row {
	return row{why: "no such thing on Linux", how: func(_ *pair, p, q reflect.Value) string {
		if !p.IsZero() || !q.IsZero() {
			return fmt.Sprintf("pull %v, procfs %v, want neither", p, q)
		}
		return ""
	}}
}

// The table: every field of every record that a task section may hold, and of
// the decoded model around them.
var table = map[string]row{
	"Task.ID":            same(0),
	"Task.Transitioning": same(0),
	"Task.Name":          same(0),
	"Task.HasSnapshot":   same(0),
	"Task.Snapshot":      nested,
	"Task.Exiting":       nested,
	"Task.HasLinux":      same(0),
	"Task.Linux":         nested,
	"Task.Memory":        nested,
	"Task.NS":            nested,
	"Task.Exe":           exempt("/proc has a path only; held against stat(2) of it in TestOracle"),
	"Task.ExePath":       same(0),
	"Task.Cmdline":       same(0),
	"Task.Cgroup":        same(0),
	"Task.MemoryCgroup":  same(0),
	"Task.EnrichFailed":  same(0),
	"Task.Threads":       {how: threadIDs, why: "the threads are pairs of their own; here the list of their ids"},

	"Thread.ID":          same(0),
	"Thread.Name":        same(0),
	"Thread.HasSnapshot": same(0),
	"Thread.Snapshot":    nested,
	"Thread.HasLinux":    same(0),
	"Thread.Linux":       nested,
	"Thread.Times":       nested,
	"Thread.Kernel":      {moves: true, how: kernelStacks, why: "by function, each file's own symbol table; then by address"},
	"Thread.User":        exempt("/proc has no user stacks; that trap and pull agree is in TestSectionIsSame"),
	"Thread.Syscall":     nested,
	"Thread.IO":          nested,
	"Thread.Delays":      exempt("no file of /proc has them"),
	"Thread.Signals":     nested,
	"Thread.Registers":   exempt("/proc shows sp and pc only, which LinuxSyscall compares"),
	"Thread.NS":          {how: pidChain, why: "/proc has the numbers, not the namespaces' inodes; the innermost inode is held against LinuxTaskNS.Pid"},
	"Task.Latency":       exempt("what the capture cost, not what it saw; TestLatency"),
	"Thread.Latency":     exempt("as Task.Latency"),
	"Thread.Sample":      exempt("of threads that were not stopped; TestSample"),
	"Thread.UserWalk":    exempt("of the window: /proc/PID/mem has the truth, TestUserStack"),
	"Thread.UserChain":   exempt("as Thread.UserWalk"),
	"Thread.UserBytes":   exempt("as Thread.UserWalk"),
	"Thread.UserHow":     exempt("made from the three above"),
	"Thread.Wait":        exempt("of the window: /proc knows no lock; TestWaitsOfKnownTasks"),
	"Thread.Futexes":     exempt("of the window: TestFutexesInTheWindow"),
	"Thread.Files":       exempt("of the window: TestFilesInTheWindow"),
	"Thread.Sockets":     exempt("of the window: TestFilesInTheWindow"),
	"Task.Mappings":      exempt("of names, not of the capture: the same whatever the engine"),
	"Task.WaitInfo":      exempt("made at collation of what the window says of waits: TestWaitsCollated"),
	"Task.MapWalk":       exempt("of the window: TestWindowMapsAreWhatProcSays"),
	"Task.PerfMap":       exempt("as Task.Mappings"),
	"Task.UserSymbols":   exempt("as Task.Mappings"),
	"Thread.Wchan":       {moves: true, how: wchan, why: "procfs only: it must be the leaf that pull unwound"},

	"TaskSnapshot.UniquePid":          same(0),
	"TaskSnapshot.SSFlags":            same(0),
	"TaskSnapshot.UserTimeTerminated": exempt("/proc does not part dead threads from live ones; held against LinuxTask.DeadUtime in TestOracle"),
	"TaskSnapshot.SysTimeTerminated":  exempt("as UserTimeTerminated"),
	"TaskSnapshot.StartSec":           {how: within(1), why: "CLOCK_REALTIME may be set or slewed between two captures"},
	"TaskSnapshot.TaskSize":           {moves: true, how: pages(3), why: rssWhy},
	"TaskSnapshot.MaxResidentSize":    {moves: true, how: pages(3), why: rssWhy},
	"TaskSnapshot.SuspendCount":       zero(),
	"TaskSnapshot.Faults":             still(0),
	"TaskSnapshot.Pageins":            still(0),
	"TaskSnapshot.COWFaults":          zero(),
	"TaskSnapshot.WasThrottled":       zero(),
	"TaskSnapshot.DidThrottle":        zero(),
	"TaskSnapshot.LatencyQoS":         zero(),
	"TaskSnapshot.Pid":                same(0),
	"TaskSnapshot.Comm":               same(0),

	"TransitioningTaskSnapshot.UniquePid":      same(0),
	"TransitioningTaskSnapshot.SSFlags":        same(0),
	"TransitioningTaskSnapshot.TransitionType": same(0),
	"TransitioningTaskSnapshot.Pid":            same(0),
	"TransitioningTaskSnapshot.Comm":           same(0),

	"LinuxTask.Present":       {how: bits(^uint64(taskOnlyPull)), why: "bits of groups that only pull can read"},
	"LinuxTask.Tgid":          same(0),
	"LinuxTask.Ppid":          same(kcdata.TaskHasIDs),
	"LinuxTask.Pgid":          same(kcdata.TaskHasIDs),
	"LinuxTask.Sid":           same(kcdata.TaskHasIDs),
	"LinuxTask.UID":           same(kcdata.TaskHasIDs),
	"LinuxTask.GID":           same(kcdata.TaskHasIDs),
	"LinuxTask.EUID":          same(kcdata.TaskHasIDs),
	"LinuxTask.EGID":          same(kcdata.TaskHasIDs),
	"LinuxTask.NrThreads":     same(kcdata.TaskHasThreadCount),
	"LinuxTask.Live":          {moves: true, how: liveThreads, why: "procfs only by the PF_EXITING of each thread"},
	"LinuxTask.ExitCode":      {moves: true, how: leaderExitCode, why: "procfs keeps it with the leader"},
	"LinuxTask.SignalFlags":   exempt("no file of /proc has them; the fixture's known ones in TestOracle"),
	"LinuxTask.OOMScoreAdj":   same(kcdata.TaskHasOOM),
	"LinuxTask.Reserved":      zero(),
	"LinuxTask.StartTime":     exempt("/proc has the boot time clock only: bit TaskHasMonotonic is clear there"),
	"LinuxTask.StartBoottime": {bit: kcdata.TaskHasTimes, how: tick, why: tickWhy},
	"LinuxTask.CgroupID":      exempt("/proc has a path; held against the inode of it in TestOracle"),
	"LinuxTask.DeadUtime":     exempt("/proc does not part dead threads from live ones; TestOracle does"),
	"LinuxTask.DeadStime":     exempt("as DeadUtime"),
	"LinuxTask.DeadMinFlt":    exempt("as DeadUtime"),
	"LinuxTask.DeadMajFlt":    exempt("as DeadUtime"),
	"LinuxTask.DeadReadB":     exempt("as DeadUtime"),
	"LinuxTask.DeadWriteB":    exempt("as DeadUtime"),

	"LinuxTaskMemory.RssFile":    {moves: true, how: pages(1), why: rssWhy},
	"LinuxTaskMemory.RssAnon":    {moves: true, how: pages(1), why: rssWhy},
	"LinuxTaskMemory.RssShmem":   {moves: true, how: pages(1), why: rssWhy},
	"LinuxTaskMemory.Swap":       {moves: true, how: pages(1), why: rssWhy},
	"LinuxTaskMemory.HiwaterRss": {moves: true, how: pages(3), why: rssWhy},
	"LinuxTaskMemory.HiwaterVM":  still(0),
	"LinuxTaskMemory.TotalVM":    still(0),
	"LinuxTaskMemory.LockedVM":   still(0),
	"LinuxTaskMemory.PinnedVM":   still(0),
	"LinuxTaskMemory.DataVM":     still(0),
	"LinuxTaskMemory.ExecVM":     still(0),
	"LinuxTaskMemory.StackVM":    still(0),
	"LinuxTaskMemory.Pgtables":   still(0),
	"LinuxTaskMemory.MapCount":   exempt("procfs would have to count all of maps; TestOracle does"),
	"LinuxTaskMemory.StartStack": same(0),
	"LinuxTaskMemory.EndCode":    same(0),
	"LinuxTaskMemory.EndData":    same(0),

	"LinuxTaskNS.Mnt":    same(0),
	"LinuxTaskNS.Pid":    same(0),
	"LinuxTaskNS.Net":    same(0),
	"LinuxTaskNS.UTS":    same(0),
	"LinuxTaskNS.IPC":    same(0),
	"LinuxTaskNS.Cgroup": same(0),
	"LinuxTaskNS.Time":   same(0),
	"LinuxTaskNS.User":   same(0),

	"LinuxTaskExe.Ino":     exempt("as Task.Exe"),
	"LinuxTaskExe.Dev":     exempt("as Task.Exe"),
	"LinuxTaskExe.Refused": exempt("of what the stop did not follow; /proc follows for itself"),
	"LinuxTaskExe.Name":    exempt("as Task.Exe"),

	"ThreadSnapshot.ThreadID":             same(0),
	"ThreadSnapshot.WaitEvent":            zero(),
	"ThreadSnapshot.Continuation":         zero(),
	"ThreadSnapshot.TotalSyscalls":        zero(),
	"ThreadSnapshot.VoucherIdentifier":    zero(),
	"ThreadSnapshot.DQSerialNum":          zero(),
	"ThreadSnapshot.UserTime":             exempt("the kernel's raw ticks; /proc shows them adjusted, as CPUTimes"),
	"ThreadSnapshot.SysTime":              exempt("as UserTime"),
	"ThreadSnapshot.SSFlags":              {moves: true, how: bits(^uint64(kcdata.SSOnCore | kcdata.SSTruncated | kcdata.SSTruncatedUser)), why: "/proc does not say whether a thread is on its CPU, and has no user stacks"},
	"ThreadSnapshot.LastRunTime":          exempt("sched_info: no file of /proc has it"),
	"ThreadSnapshot.LastMadeRunnableTime": exempt("sched_info: no file of /proc has it"),
	"ThreadSnapshot.State":                still(0),
	"ThreadSnapshot.SchedFlags":           zero(),
	"ThreadSnapshot.BasePriority":         same(0),
	"ThreadSnapshot.SchedPriority":        still(0),
	"ThreadSnapshot.EQoS":                 zero(),
	"ThreadSnapshot.RQoS":                 zero(),
	"ThreadSnapshot.RQoSOverride":         zero(),
	"ThreadSnapshot.IOTier":               zero(),
	"ThreadSnapshot.ThreadT":              zero(),
	"ThreadSnapshot.RequestedPolicy":      zero(),
	"ThreadSnapshot.EffectivePolicy":      zero(),

	"CPUTimes.UserUsec":     {moves: true, how: cpuTimes, why: cputimeWhy},
	"CPUTimes.SystemUsec":   {moves: true, how: cpuTimes, why: cputimeWhy},
	"CPUTimes.RunnableUsec": still(0),

	"LinuxThread.Present":        {moves: true, how: bits(^uint64(threadOnlyPull)), why: "bits of groups that only pull can read"},
	"LinuxThread.Tid":            same(0),
	"LinuxThread.Tgid":           same(0),
	"LinuxThread.State":          {moves: true, how: stateLetter, why: "/proc folds __state and exit_state into one letter"},
	"LinuxThread.ExitState":      still(0),
	"LinuxThread.Flags":          still(0),
	"LinuxThread.CPU":            still(0),
	"LinuxThread.OnCPU":          exempt("no file of /proc has it; TestWhatEachCPURan"),
	"LinuxThread.Policy":         same(0),
	"LinuxThread.Prio":           still(0),
	"LinuxThread.StaticPrio":     {bit: 0, how: nicePrio, why: "pull only: 120 + nice"},
	"LinuxThread.NormalPrio":     {moves: true, how: normalPrio, why: "pull only: prio, where nothing boosts it"},
	"LinuxThread.RtPriority":     same(0),
	"LinuxThread.Nice":           same(0),
	"LinuxThread.KstackErr":      exempt("/proc does not say why a stack is empty; TestKnownStates"),
	"LinuxThread.KstackDepth":    still(kcdata.ThreadHasStack),
	"LinuxThread.ExitCode":       still(kcdata.ThreadHasExitCode),
	"LinuxThread.StartTime":      exempt("as LinuxTask.StartTime"),
	"LinuxThread.StartBoottime":  {bit: kcdata.ThreadHasStart, how: tick, why: tickWhy},
	"LinuxThread.Utime":          exempt("the kernel's raw ticks; /proc shows them adjusted, as CPUTimes, and leaves the presence bit clear"),
	"LinuxThread.Stime":          exempt("as Utime"),
	"LinuxThread.SumExecRuntime": still(kcdata.ThreadHasRuntime),
	"LinuxThread.RunDelay":       still(kcdata.ThreadHasRuntime),
	"LinuxThread.Pcount":         still(kcdata.ThreadHasRuntime),
	"LinuxThread.LastArrival":    exempt("sched_info: no file of /proc has it"),
	"LinuxThread.LastQueued":     exempt("sched_info: no file of /proc has it"),
	"LinuxThread.ExecStart":      exempt("no file of /proc has it"),
	"LinuxThread.Nvcsw":          still(kcdata.ThreadHasSwitches),
	"LinuxThread.Nivcsw":         still(kcdata.ThreadHasSwitches),
	"LinuxThread.MinFlt":         still(kcdata.ThreadHasFaults),
	"LinuxThread.MajFlt":         still(kcdata.ThreadHasFaults),
	"LinuxThread.DisplacedNs":    exempt("as OnCPU"),
	"LinuxThread.KstackSkipped":  exempt("the preemption path of a thread on its CPU: TestSpinnersAreOnCore"),
	"LinuxThread.Reserved":       zero(),
	"LinuxThread.FsBase":         exempt("no file of /proc has it; the fixture's actors share one in TestOracle"),

	"LinuxSyscall.Nr":   still(0),
	"LinuxSyscall.IP":   still(0),
	"LinuxSyscall.SP":   still(0),
	"LinuxSyscall.Args": {moves: true, how: args, why: "/proc writes no arguments for a thread outside a system call"},

	"LinuxThreadIO.Rchar":          still(0),
	"LinuxThreadIO.Wchar":          still(0),
	"LinuxThreadIO.Syscr":          still(0),
	"LinuxThreadIO.Syscw":          still(0),
	"LinuxThreadIO.ReadBytes":      still(0),
	"LinuxThreadIO.WriteBytes":     still(0),
	"LinuxThreadIO.CancelledWrite": still(0),

	"LinuxDelays.BlkioNs":     exempt("as Thread.Delays"),
	"LinuxDelays.SwapinNs":    exempt("as Thread.Delays"),
	"LinuxDelays.FreepagesNs": exempt("as Thread.Delays"),
	"LinuxDelays.ThrashingNs": exempt("as Thread.Delays"),
	"LinuxDelays.CompactNs":   exempt("as Thread.Delays"),
	"LinuxDelays.WpcopyNs":    exempt("as Thread.Delays"),
	"LinuxDelays.Blkio":       exempt("as Thread.Delays"),
	"LinuxDelays.Swapin":      exempt("as Thread.Delays"),
	"LinuxDelays.Freepages":   exempt("as Thread.Delays"),
	"LinuxDelays.Thrashing":   exempt("as Thread.Delays"),
	"LinuxDelays.Compact":     exempt("as Thread.Delays"),
	"LinuxDelays.Wpcopy":      exempt("as Thread.Delays"),

	"LinuxSignals.Pending":       still(0),
	"LinuxSignals.SharedPending": still(0),
	"LinuxSignals.Blocked":       still(0),

	"LinuxThreadNS.Inode": exempt("as Thread.NS"),
	"LinuxThreadNS.Tid":   exempt("compared under Thread.NS, number by number"),
}

// recordTypes are the records of the table.
var recordTypes = []reflect.Type{
	reflect.TypeFor[kcdata.Task](), reflect.TypeFor[kcdata.Thread](),
	reflect.TypeFor[kcdata.TaskSnapshot](), reflect.TypeFor[kcdata.TransitioningTaskSnapshot](),
	reflect.TypeFor[kcdata.LinuxTask](), reflect.TypeFor[kcdata.LinuxTaskMemory](),
	reflect.TypeFor[kcdata.LinuxTaskNS](), reflect.TypeFor[kcdata.LinuxTaskExe](),
	reflect.TypeFor[kcdata.ThreadSnapshot](), reflect.TypeFor[kcdata.CPUTimes](),
	reflect.TypeFor[kcdata.LinuxThread](), reflect.TypeFor[kcdata.LinuxSyscall](),
	reflect.TypeFor[kcdata.LinuxThreadIO](), reflect.TypeFor[kcdata.LinuxDelays](),
	reflect.TypeFor[kcdata.LinuxSignals](), reflect.TypeFor[kcdata.LinuxThreadNS](),
}

const (
	rssWhy     = "pull reads the kernel's per-CPU counters without summing: each off by less than a batch of pages per CPU"
	tickWhy    = "/proc has ticks of 10 ms"
	cputimeWhy = "/proc has ticks of 10 ms, and never lets a figure fall (cputime_adjust): only the sum is of now"

	taskOnlyPull = kcdata.TaskHasSignal | kcdata.TaskHasCgroup | kcdata.TaskHasGroupIO | kcdata.TaskHasFaults |
		kcdata.TaskInExec | kcdata.TaskHasMonotonic
	threadOnlyPull = kcdata.ThreadHasTimes | kcdata.ThreadHasSchedInfo | kcdata.ThreadHasPrio |
		kcdata.ThreadHasFsBase | kcdata.ThreadHasOnCPU | kcdata.ThreadNeverRan | kcdata.ThreadHasMonotonic |
		kcdata.ThreadDisplaced
)

// A record that gains a field must gain a row.
func TestTableHasEveryField(t *testing.T) {
	left := map[string]bool{}
	for name := range table {
		left[name] = true
	}
	for _, typ := range recordTypes {
		for i := range typ.NumField() {
			name := typ.Name() + "." + typ.Field(i).Name
			r, ok := table[name]
			delete(left, name)
			switch {
			case !ok:
				t.Errorf("%s has no row: say how pull and procfs compare", name)
			case r.how == nil && r.why == "":
				t.Errorf("%s is neither compared nor exempt for a reason", name)
			}
		}
	}
	for name := range left {
		t.Errorf("row %s is of no field", name)
	}
}

// Every record that may stand in a task section has rows.
func TestTableHasEveryRecord(t *testing.T) {
	names := map[string]bool{}
	for _, typ := range recordTypes {
		names[typ.Name()] = true
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[kcdata.Task](), reflect.TypeFor[kcdata.Thread]()} {
		for i := range typ.NumField() {
			f := typ.Field(i).Type
			for f.Kind() == reflect.Pointer || f.Kind() == reflect.Slice {
				f = f.Elem()
			}
			if r, ok := table[typ.Name()+"."+typ.Field(i).Name]; ok && r.how == nil {
				continue // exempt as a whole
			}
			if f.Kind() == reflect.Struct && !names[f.Name()] {
				t.Errorf("%s.%s: record %s is not in recordTypes", typ.Name(), typ.Field(i).Name, f.Name())
			}
		}
	}
}
