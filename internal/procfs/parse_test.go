package procfs

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Stat lines: of 6.18 as read, of older kernels in the shape those write.
const (
	stat618     = "4502 (cat) R 4488 4488 2524 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 79028 3133440 382 18446744073709551615 94720914636800 94720914656681 140730584509296 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 94720914672688 94720914674304 94721661829120 140730584517304 140730584517324 140730584517324 140730584518635 0\n"
	statKthread = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 25 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
	statShort   = "7 (migration/0) S 2 0 0 0 -1 69247040 0 0 0 0 1 2 -3 -4 -100 0 1 0 9 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 18446744071579123456 0 0 -1 3 99 1"
	statEvil    = "31 (a) R 1 (b\n\xff)) Z 1 31 31 34816 31 4228108 1 2 3 4 5 6 7 8 39 19 1 0 5 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 9 53 54\n"
)

func TestParseStat(t *testing.T) {
	st, err := ParseStat([]byte(stat618))
	if err != nil {
		t.Fatal(err)
	}
	want := ProcStat{PID: 4502, Comm: "cat", State: 'R', PPID: 4488, PGRP: 4488, Session: 2524, Flags: 4194304,
		MinFlt: 99, Priority: 20, NumThreads: 1, StartTime: 79028, VSize: 3133440, EndCode: 94720914656681, StartStack: 140730584509296, EndData: 94720914674304, Processor: 1, Fields: 52}
	if d := cmp.Diff(want, st); d != "" {
		t.Error(d)
	}
	if st, err = ParseStat([]byte(statKthread)); err != nil || st.Comm != "kthreadd" || st.Flags != 2129984 || st.Fields != 52 {
		t.Errorf("kernel thread: %+v, %v", st, err)
	}
	if st, err = ParseStat([]byte(statShort)); err != nil || st.Fields != 41 || st.Utime != 1 || st.Stime != 2 || st.Priority != -100 ||
		st.RTPriority != 99 || st.Policy != 1 || st.Processor != 3 || st.ExitCode != 0 {
		t.Errorf("41 fields: %+v, %v", st, err)
	}
	if st, err = ParseStat([]byte(statEvil)); err != nil || st.Comm != "a) R 1 (b\n\xff)" || st.State != 'Z' || st.PPID != 1 ||
		st.MinFlt != 1 || st.MajFlt != 3 || st.Utime != 5 || st.Stime != 6 || st.Priority != 39 || st.Nice != 19 || st.ExitCode != 9 || st.Fields != 54 {
		t.Errorf("hostile name: %+v, %v", st, err)
	}
}

// Cut anywhere before field 41 ends, a line is an error, never a wrong answer.
func TestParseStatTruncated(t *testing.T) {
	for n := range len(statShort) - 1 {
		if st, err := ParseStat([]byte(statShort[:n])); !errors.Is(err, ErrSyntax) || st != (ProcStat{}) {
			t.Fatalf("%q: %+v, %v", statShort[:n], st, err)
		}
	}
	_, err := ParseStat([]byte(strings.Replace(stat618, " 99 ", " ninety ", 1)))
	if want := `stat: field 10: "ninety" not what the kernel writes`; !errors.Is(err, ErrSyntax) || err.Error() != want {
		t.Errorf("%v does not name the field", err)
	}
}

// As read on 6.18, with a hostile name and inner namespaces put in.
const status618 = "Name:\ta\\nb \\\\x: y \t\nUmask:\t0022\nState:\tR (running)\nTgid:\t4503\nNgid:\t0\nPid:\t4504\nPPid:\t4488\nTracerPid:\t7\n" +
	"Uid:\t0\t1\t2\t4294967295\nGid:\t5\t6\t7\t8\nFDSize:\t256\nGroups:\t \nNStgid:\t4503\t12\nNSpid:\t4504\t13\t1\nNSpgid:\t4488\nNSsid:\t2524\nKthread:\t0\n" +
	"VmPeak:\t    3060 kB\nVmSize:\t    3060 kB\nVmLck:\t       0 kB\nVmPin:\t       0 kB\nVmHWM:\t    1672 kB\nVmRSS:\t    1672 kB\n" +
	"RssAnon:\t     112 kB\nRssFile:\t    1560 kB\nRssShmem:\t       0 kB\nVmData:\t     360 kB\nVmStk:\t     132 kB\nVmExe:\t      20 kB\n" +
	"VmLib:\t    1528 kB\nVmPTE:\t      48 kB\nVmSwap:\t       4 kB\nHugetlbPages:\t       0 kB\nCoreDumping:\t1\nTHP_enabled:\t1\nuntag_mask:\t0xffffffffffffffff\n" +
	"Threads:\t2\nSigQ:\t0/96365\nSigPnd:\t0000000000000200\nShdPnd:\t0000000000004000\nSigBlk:\t8000000000000001\nSigIgn:\t0000000000001000\nSigCgt:\tffffffffffc1feff\n" +
	"CapInh:\t0000000000000000\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\nMems_allowed_list:\t0\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t3\n"

// A kernel thread in the shape 3.10 writes: no memory, no NS lines, no Kthread.
const status310 = "Name:\trcu_sched\nState:\tS (sleeping)\nTgid:\t9\nNgid:\t0\nPid:\t9\nPPid:\t2\nTracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n" +
	"FDSize:\t64\nGroups:\t\nThreads:\t1\nSigQ:\t0/7202\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\t0000000000000000\n" +
	"SigIgn:\tffffffffffffffff\nSigCgt:\t0000000000000000\nvoluntary_ctxt_switches:\t98\nnonvoluntary_ctxt_switches:\t0\n"

func TestParseStatus(t *testing.T) {
	st, err := ParseStatus([]byte(status618))
	if err != nil {
		t.Fatal(err)
	}
	want := ProcStatus{Present: StatusHasMemory | StatusHasKthread, Tgid: 4503, Pid: 4504, PPid: 4488,
		UID: [4]uint32{0, 1, 2, math.MaxUint32}, GID: [4]uint32{5, 6, 7, 8}, Threads: 2, NSpid: []int{4504, 13, 1},
		CoreDumping: true, VmPeak: 3060 << 10, VmSize: 3060 << 10, VmHWM: 1672 << 10, VmRSS: 1672 << 10, RssAnon: 112 << 10,
		RssFile: 1560 << 10, VmData: 360 << 10, VmStk: 132 << 10, VmExe: 20 << 10, VmLib: 1528 << 10, VmPTE: 48 << 10, VmSwap: 4 << 10,
		SigPnd: 0x200, ShdPnd: 0x4000, SigBlk: 1<<63 | 1, SigCgt: 0xffffffffffc1feff,
		VoluntaryCtxtSwitches: 150, NonvoluntaryCtxtSwitches: 3}
	if d := cmp.Diff(want, st); d != "" {
		t.Error(d)
	}
	// The same record used again must not keep what the next file lacks.
	if err := st.Parse([]byte(status310)); err != nil {
		t.Fatal(err)
	}
	old := ProcStatus{Tgid: 9, Pid: 9, PPid: 2, Threads: 1, NSpid: []int{}, VoluntaryCtxtSwitches: 98}
	if d := cmp.Diff(old, st); d != "" {
		t.Error(d)
	}
}

func TestParseStatusErrors(t *testing.T) {
	for text, field := range map[string]string{
		"":                         "Pid",
		"Name:\tx\n":               "Pid",
		"Pid:\tx\n":                "Pid",
		"Pid:\t99999999999\n":      "Pid",
		"Pid:\t1\nVmRSS:\t1 MB\n":  "VmRSS",
		"Pid:\t1\nUid:\t1\t2\t3\n": "Uid",
		"Pid:\t1\nSigPnd:\t0g\n":   "SigPnd",
		"Pid:\t1\nNSpid:\t\n":      "NSpid",
		"Pid:\t1\nKthread:\t2\n":   "Kthread",
		"Pid:\t1\nno colon\n":      "line",
		"Pid:\t0\n":                "Pid",
		"Pid:\t1\nSigBlk:\t1" + strings.Repeat("0", 16): "SigBlk",
		"Pid:\t1\nVmRSS:\t18446744073709551615 kB\n":    "VmRSS",
	} {
		_, err := ParseStatus([]byte(text))
		if !errors.Is(err, ErrSyntax) || !strings.HasPrefix(err.Error(), "status: "+field+": ") {
			t.Errorf("%q: %v, want field %s", text, err, field)
		}
	}
}

// ParseStack is Parse into a record of its own.
func ParseStack(b []byte) (ThreadStack, error) {
	var st ThreadStack
	if err := st.Parse(b); err != nil {
		return ThreadStack{}, err
	}
	return st, nil
}

func TestParseStack(t *testing.T) {
	for text, want := range map[string]ThreadStack{
		"": {},
		"[<0>] proc_pid_stack+0xb1/0x150\n[<0>] xfs_file_read_iter.isra.0+0x6e/0xf0 [xfs]\n": {Frames: []Frame{
			{Symbol: "proc_pid_stack", Offset: 0xb1, Size: 0x150},
			{Symbol: "xfs_file_read_iter.isra.0", Offset: 0x6e, Size: 0xf0, Module: "xfs"}}},
		// Before 4.15 the addresses were shown, and a mark closed the list.
		"[<ffffffff8109f0a0>] do_wait+0x1f6/0x250\n[<ffffffffa0123456>] ? ext4_x+0x0/0x10 [ext4]\n[<ffffffffffffffff>] 0xffffffffffffffff\n": {Frames: []Frame{
			{Addr: 0xffffffff8109f0a0, Symbol: "do_wait", Offset: 0x1f6, Size: 0x250},
			{Addr: 0xffffffffa0123456, Symbol: "ext4_x", Size: 0x10, Module: "ext4"}}},
		"[<0>] 0xffffffffc0a01234\n": {Frames: []Frame{{Addr: 0xffffffffc0a01234}}},
		"Call Trace:\n <TASK>\n[<0>] operator+0x2+0x4/0x8\n\n  (inlined by) f at x.c:3\n": {
			Frames: []Frame{{Symbol: "operator+0x2", Offset: 4, Size: 8}}},
		"[<0>] bpf_prog_1a2b_f+0x10/0x20 [bpf]": {Frames: []Frame{{Symbol: "bpf_prog_1a2b_f", Offset: 16, Size: 32, Module: "bpf"}}},
	} {
		got, err := ParseStack([]byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
	for _, text := range []string{"[<0>", "[<0>]", "[<0>] ", "[<zz>] f+0x1/0x2", "[<0>] f+0x/0x2", "[<0>] f+0x1/", "[<0>] +0x1/0x2",
		"[<0>] f+0x1/0x2 [", "[<0>] f+0x1/0x2 []", "[<0>] f+0x1/0x2 [m"} {
		if st, err := ParseStack([]byte(text)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %+v, %v", text, st, err)
		}
	}
	deep, _ := ParseStack([]byte(strings.Repeat("[<0>] f+0x1/0x2\n", MaxStackDepth)))
	if !deep.Truncated || len(deep.Frames) != MaxStackDepth {
		t.Errorf("%d frames, truncated %v", len(deep.Frames), deep.Truncated)
	}
}

func TestParseSyscall(t *testing.T) {
	for text, want := range map[string]Syscall{
		"running\n":                {},
		"-1 0x7ffc2ba0 0x401136\n": {Nr: -1, SP: 0x7ffc2ba0, PC: 0x401136},
		"0 0x3 0x7f9aadc14000 0x20000 0x1 0xffffffff 0x0 0x7fffa839f558 0x7f9aadd902ad\n": {Args: [6]uint64{3, 0x7f9aadc14000, 0x20000, 1, 0xffffffff},
			SP: 0x7fffa839f558, PC: 0x7f9aadd902ad},
		"0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0": {},
	} {
		got, err := ParseSyscall([]byte(text))
		if err != nil || got != want || got.InUserSpace() != (want.SP != 0) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "run", "-1 0x1", "-1 0x1 0x2 0x3", "0 0x1 0x2", "0 1 2 3 4 5 6 7 8", "0x1 0x2 0x3"} {
		if got, err := ParseSyscall([]byte(text)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestParseSmallFiles(t *testing.T) {
	const io = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n"
	if got, err := ParseIO([]byte("new_key: 9\n" + io)); err != nil || got != (IO{1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("io: %+v, %v", got, err)
	}
	for i := range 7 {
		lines := strings.SplitAfter(io, "\n")
		lines[i] = ""
		if _, err := ParseIO([]byte(strings.Join(lines, ""))); !errors.Is(err, ErrSyntax) {
			t.Errorf("io without line %d: %v", i, err)
		}
	}
	if got, err := ParseSchedstat([]byte("12345 678 9\n")); err != nil || got != (Schedstat{12345, 678, 9}) {
		t.Errorf("schedstat: %+v, %v", got, err)
	}
	if _, err := ParseSchedstat([]byte("1 2\n")); !errors.Is(err, ErrSyntax) {
		t.Errorf("schedstat of two: %v", err)
	}
	if ParseWchan([]byte("0")) != "" || ParseWchan([]byte("do_wait")) != "do_wait" {
		t.Error("wchan")
	}
	if n, err := ParseOOMScoreAdj([]byte("-1000\n")); err != nil || n != -1000 {
		t.Error("oom_score_adj", n, err)
	}
	if _, err := ParseOOMScoreAdj([]byte("1001\n")); !errors.Is(err, ErrSyntax) {
		t.Error("oom_score_adj 1001", err)
	}
	if kind, inode, err := ParseNSLink([]byte("pid:[4026531836]")); kind != "pid" || inode != FirstPidNS || err != nil {
		t.Error("ns", kind, inode, err)
	}
}

func TestCgroup(t *testing.T) {
	for text, want := range map[string]Cgroup{
		"0::/user.slice/a:b\n": {0, "", "/user.slice/a:b"},
		"0::/\n":               {0, "", "/"},
		"9:cpu,cpuacct:/c\n4:memory:/m (deleted)\n1:name=systemd:/s\n":       {4, "memory", "/m (deleted)"},
		"9:cpu,cpuacct:/c\n4:memory:/m (deleted)\n1:name=systemd:/s\n0::/\n": {0, "", "/"},
		"4:memory:/m\n0::/u\n":           {0, "", "/u"},
		"2:cpu,cpuacct:/c\n1:name=s:/\n": {2, "cpu,cpuacct", "/c"},
		"2:cpu:/\n1:name=systemd:/\n":    {2, "cpu", "/"},
		"":                               {},
	} {
		lines, err := ParseCgroup([]byte(text))
		if got := CgroupPath(lines); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"\n", "0:/\n", "x::/\n", "0::\n"} {
		if _, err := ParseCgroup([]byte(text)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
