package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// hungFile is a file made by hand: no capture, no root. In it two threads in D have waited for
// each other's kernel mutex for some seconds, by the kernel's own fields; healthy: they wait
// for nothing. recorded: it has records of waits.
func hungFile(t *testing.T, healthy, recorded bool) string {
	t.Helper()
	const now, ms = 100e9, 1e6
	w := kcdata.NewWriter(make([]byte, 1<<14))
	err := errors.Join(w.Begin(kcdata.MagicStackshot),
		w.Struct(kcdata.TypeLinuxMachine, kcdata.LinuxMachine{RealtimeNs: 1e18, MonotonicNs: now, PidNSIsFirst: 1}),
		w.String(kcdata.TypeLinuxHostname, "db7"), w.String(kcdata.TypeLinuxArch, "x86_64"),
		w.String(kcdata.TypeLinuxEngine, "trap"), w.String(kcdata.TypeLinuxIsolation, "irqoff"),
		w.StructArray(kcdata.TypeLinuxCPU, []kcdata.LinuxCPU{{Flags: kcdata.CPUStopped | kcdata.CPUWorked, RqClock: now, RqClockAt: now}}),
		w.BeginContainer(kcdata.TypeTask, 70), w.Struct(kcdata.TypeTaskSnapshot, kcdata.TaskSnapshot{Pid: 70, Comm: [32]byte{'a', 'p', 'p'}}),
		w.Struct(kcdata.TypeLinuxTask, kcdata.LinuxTask{Tgid: 70}))
	for i := range uint32(2) {
		tid, other := 70+i, 71-i
		l := kcdata.LinuxThread{
			Present: kcdata.ThreadHasSchedInfo | kcdata.ThreadHasOnCPU | kcdata.ThreadHasStart, Tid: tid, Tgid: 70,
			State: kcdata.StateUninterruptible, LastArrival: now - 5000*ms, ExecStart: now - 5000*ms, StartBoottime: uint64(tid) * 1000,
		}
		if healthy {
			l.State = kcdata.StateInterruptible
		}
		err = errors.Join(err, w.BeginContainer(kcdata.TypeThread, uint64(tid)), w.Struct(kcdata.TypeLinuxThread, l))
		if !healthy {
			err = errors.Join(err, w.Struct(kcdata.TypeLinuxWait, kcdata.LinuxWait{
				Flags: kcdata.WaitField | kcdata.WaitOwned, Kind: kcdata.LockMutex, Lock: 0xffff888000001000 + 64*uint64(i),
				OwnerTid: other, OwnerTgid: 70, OwnerStart: uint64(other) * 1000,
			}))
		}
		err = errors.Join(err, w.EndContainer(uint64(tid)))
	}
	err = errors.Join(err, w.EndContainer(70), w.Struct(kcdata.TypeLinuxCapture, kcdata.LinuxCapture{StopNs: now, StoppedNs: ms, WindowNs: ms, Tries: 1}))
	if recorded {
		err = errors.Join(err, w.Struct(kcdata.TypeLinuxWaitTaken, kcdata.LinuxWaitTaken{Sources: kcdata.WaitHasBlockedOn, Threads: 2, Fields: 2}))
	}
	name := filepath.Join(t.TempDir(), "hung")
	if err = errors.Join(err, w.End()); err == nil {
		err = os.WriteFile(name, w.Written(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// Of a file: exit code 4 if something hangs, 0 if nothing does; the verdict stands on standard
// output and nothing but it; JSON is one object. The report's first screen has the same finding.
func TestHangOfAFile(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	hung := hungFile(t, false, true)
	text := stackshot(t, "hang", hung)
	if text.want(t, exitHang); text.stderr != "" || !strings.Contains(text.stdout, "Deadlock of 2 threads: app [70]") {
		t.Errorf("%q, %s", text.stderr, text.stdout)
	}
	report := stackshot(t, "report", hung)
	if report.want(t, exitWhole); !strings.Contains(report.stdout, "deadlock of 2: app [70], tid 71;") || !strings.Contains(report.stdout, ", tid 70 waits for the kernel mutex 0xffff888000001") {
		t.Errorf("%s", report.stdout)
	}
	js := stackshot(t, "hang", "--format", "json", hung)
	var doc struct {
		Format, File string
		Hangs        bool
		Deadlocks    []struct{ Threads []struct{ Tid int } }
	}
	if js.want(t, exitHang); json.Unmarshal([]byte(js.stdout), &doc) != nil || doc.Format != "stackshot-hang" || doc.File != hung || !doc.Hangs || len(doc.Deadlocks[0].Threads) != 2 || js.stderr != "" {
		t.Errorf("%+v: %s", doc, js.stdout)
	}
	dot := stackshot(t, "hang", "--format", "dot", hung)
	if dot.want(t, exitHang); !strings.HasPrefix(dot.stdout, "digraph hang {\n") || !strings.HasSuffix(dot.stdout, "}\n") {
		t.Errorf("%s", dot.stdout)
	}
	stackshot(t, "hang", "--pid", "4", hung).want(t, exitIncomplete, "none of 2 threads matches", "not in the file: pid 4")
	stackshot(t, "hang", "--pid", "4294967366", hung).want(t, exitUsage) // 70, if it were cut to 32 bits
	if o := stackshot(t, "hang", hungFile(t, true, true)); o.code != exitWhole || !strings.Contains(o.stdout, "Nothing hangs: ") || o.stderr != "" {
		t.Errorf("healthy: %d, %s%s", o.code, o.stderr, o.stdout)
	}
	if o := stackshot(t, "hang", hungFile(t, true, false)); o.code != exitIncomplete || !strings.Contains(o.stdout, "Nothing is known to hang: ") || !strings.Contains(o.stderr, "not known") {
		t.Errorf("no records of waits: %d, %s%s", o.code, o.stderr, o.stdout)
	}
}

// What comes before a break is judged. A hang goes before the break, and a message says both.
func TestHangOfACutFile(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	for healthy, code := range map[bool]int{true: exitIncomplete, false: exitHang} {
		name := hungFile(t, healthy, true)
		if err := os.Truncate(name, int64(len(read(t, name))-16)); err != nil {
			t.Fatal(err)
		}
		o := stackshot(t, "hang", name)
		if o.want(t, code, name, "1 task with 2 threads"); !strings.Contains(o.stdout, "== WAITING") {
			t.Errorf("%s", o.stdout)
		}
	}
	in := invocation{bend: func(c *exec.Cmd) { c.Stdin = strings.NewReader("no snapshot at all") }}
	if o := in.run(t, "hang", "-"); o.code != exitFailed || o.stdout != "" {
		t.Errorf("no snapshot: %d, %s", o.code, o.stdout)
	}
}

// Without a file it takes one and keeps it: the report's options choose the capture, and
// standard output holds the verdict alone. A capture of a healthy machine may be judged again.
func TestHangTakesASnapshot(t *testing.T) {
	testneed.Smoke(t)
	testneed.Slow(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file.kcdata")
	o := stackshot(t, "hang", "--engine", "procfs", "--format", "json", "-o", file, "--pid", "1")
	var doc struct {
		File    string
		Capture struct{ Engine string }
	}
	if err := json.Unmarshal([]byte(o.stdout), &doc); err != nil || doc.File != file || doc.Capture.Engine != "procfs" {
		t.Fatalf("%v: %+v, %s%.300s", err, doc, o.stderr, o.stdout)
	}
	if !strings.Contains(o.stderr, "wrote "+file) || !strings.Contains(o.stderr, "not known") || o.code != exitIncomplete {
		t.Errorf("%d: %s", o.code, o.stderr)
	}
	mode0600(t, file)
	if s, err := readWhole(file); err != nil || len(s.Tasks) < 2 {
		t.Errorf("--pid limited what is recorded: %v", err)
	}
	again := stackshot(t, "hang", "--format", "json", "--pid", "1", file)
	if again.code != o.code {
		t.Errorf("the file gives %d, the capture gave %d", again.code, o.code)
	}
	out := stackshot(t, "hang", "--engine", "procfs", "-o", "-")
	if !strings.Contains(out.stderr, "== WAITING") || strings.Contains(out.stdout, "== WAITING") {
		t.Errorf("-o -: %s", out.stderr)
	}
}
