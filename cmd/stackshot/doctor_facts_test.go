package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/procfs"
	"stackshot/snapshot"
)

// files are those of a machine that never was: under proc/ and sys/. A value that
// begins with "-> " is a link.
type files map[string]string

func (f files) doctor(t *testing.T) *doctor {
	t.Helper()
	root := t.TempDir()
	for name, text := range f {
		name = filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if link, ok := strings.CutPrefix(text, "-> "); ok && err == nil {
			err = os.Symlink(link, name)
		} else if err == nil {
			err = os.WriteFile(name, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	d := &doctor{proc: procfs.FS{Root: root + "/proc"}, sys: procfs.FS{Root: root + "/sys"}}
	d.Auto = choice{Engine: snapshot.EngineTrap, Isolation: snapshot.IsolationIRQOff, MaxPauseNs: int64(100 * time.Millisecond)}
	return d
}

// find files the fact of that name.
func (d *doctor) find(name string) {
	for _, c := range slices.Concat(kernelChecks, machineChecks, stopChecks, panicChecks) {
		if c.name == name {
			d.add("", name, c.look(d))
		}
	}
}

// wantFact: there is this one fact of the name, good or bad, with all these words.
func (d *doctor) wantFact(t *testing.T, name string, ok bool, words ...string) {
	t.Helper()
	found := 0
	for _, f := range d.Facts {
		if f.Name != name {
			continue
		}
		found++
		for _, w := range words {
			if text := f.Value + ": " + f.Cost; !strings.Contains(text, w) {
				t.Errorf("%q does not say %q", text, w)
			}
		}
		if f.OK != ok || f.OK != (f.Cost == "") || f.Value == "" {
			t.Errorf("%+v, want ok %v", f, ok)
		}
	}
	if found != 1 {
		t.Errorf("%d facts %q in %+v", found, name, d.Facts)
	}
}

func TestDoctorWatchdogs(t *testing.T) {
	t.Parallel()
	const dir = "proc/sys/kernel/"
	for _, c := range []struct {
		thresh, nmi, hard, soft string // "": there is no such file
		isolation               string
		hardOK, softOK          bool
		hardWords, softWords    string
	}{
		{"10", "1", "0", "0", "irqoff", true, true, "after 10s, it only warns; a stop with interrupts off is at most 2s", "after 20s; a stop of 100ms is over before"},
		{"10", "1", "1", "1", "irqoff", false, true, "after 10s, and it panics (kernel.hardlockup_panic): a stop with interrupts off is at most 2s", "it panics"},
		{"10", "0", "1", "1", "preemptoff", true, false, "off (kernel.nmi_watchdog)", "after 20s, and it panics (kernel.softlockup_panic): a stop by --max-pause"},
		{"10", "1", "0", "1", "fifo", true, true, "only warns", "panics"},
		{"3", "1", "0", "0", "irqoff", false, true, "after 3s (kernel.watchdog_thresh): --max-pause is cut to half of that, 1.5s", "after 6s"},
		{"1", "0", "", "0", "irqoff", false, true, "500ms", "after 2s"},
		{"0", "1", "1", "1", "irqoff", true, true, "none (kernel.watchdog_thresh)", "none"},
		{"10", "", "", "", "irqoff", true, true, "off", "none"},
		{"", "", "", "", "irqoff", true, true, "none", "none"},
	} {
		f := files{}
		for name, value := range map[string]string{"watchdog_thresh": c.thresh, "nmi_watchdog": c.nmi, "hardlockup_panic": c.hard, "softlockup_panic": c.soft} {
			if value != "" {
				f[dir+name] = value + "\n"
			}
		}
		d := f.doctor(t)
		d.Auto.Isolation = c.isolation
		d.find("hard lockup detector")
		d.find("soft lockup detector")
		d.wantFact(t, "hard lockup detector", c.hardOK, c.hardWords)
		d.wantFact(t, "soft lockup detector", c.softOK, c.softWords)
	}
}

// One fact each, by one file or several of a machine that never was.
func TestDoctorFacts(t *testing.T) {
	t.Parallel()
	ranges := func(n int) (text string) {
		for i := range n {
			size := 0x1fffff
			if i >= bpf.MaxRAM {
				size = 0xfffff // the smallest are left out
			}
			text += fmt.Sprintf("%x-%x : System RAM\n  %[1]x-%[1]x : Kernel code\n", i<<24, i<<24+size)
		}
		return text
	}
	one := func(name string) func(string) files {
		return func(text string) files { return files{name: text} }
	}
	clock, ram, numa := one("sys/devices/system/clocksource/clocksource0/current_clocksource"), one("proc/iomem"), one("proc/sys/kernel/numa_balancing")
	meminfo, sysrq, crash := one("proc/meminfo"), one("proc/sys/kernel/sysrq"), one("sys/kernel/kexec_crash_loaded")
	stall := func(normal, exp, suppress, panics string) files { // "": there is no such file
		const dir = "sys/module/rcupdate/parameters/"
		f := files{dir + "rcu_cpu_stall_timeout": normal, dir + "rcu_exp_cpu_stall_timeout": exp, dir + "rcu_cpu_stall_suppress": suppress, "proc/sys/kernel/panic_on_rcu_stall": panics}
		maps.DeleteFunc(f, func(_, value string) bool { return value == "" })
		return f
	}
	const (
		root  = "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
		tmpfs = "40 27 0:23 / /run rw shared:2 - tmpfs tmpfs rw\n"
	)
	run := func(self, init string) files {
		return files{"proc/self/ns/pid": "-> pid:[4026531836]", "proc/self/mountinfo": self, "proc/1/mountinfo": init}
	}
	elsewhere := run(root+tmpfs, root+tmpfs)
	elsewhere["proc/self/ns/pid"] = "-> pid:[4026532222]"
	for _, c := range []struct {
		fact  string
		files files
		ok    bool
		words string
	}{
		{"clock source", clock("tsc\n"), true, "tsc"}, {"clock source", clock("acpi_pm\n"), true, "acpi_pm"}, {"clock source", files{}, true, "not known"},
		{"clock source", clock("jiffies\n"), false, "jiffies"}, {"clock source", clock("refined-jiffies\n"), false, "refined-jiffies"},

		{"RCU stall", stall("21", "0", "0", "0"), true, "logged after 21s (rcu_cpu_stall_timeout); a stop of 100ms"},
		{"RCU stall", stall("21", "20", "0", "0"), false, "logged after 20ms (rcu_exp_cpu_stall_timeout): a stop may take 100ms, and be logged"},
		{"RCU stall", stall("21", "20", "0", "1"), false, "it panics (kernel.panic_on_rcu_stall): a stop may take 100ms: choose a --max-pause below"},
		{"RCU stall", stall("21", "100", "0", "0"), false, "100ms"},
		{"RCU stall", stall("21", "101", "0", "1"), true, "101ms (rcu_exp_cpu_stall_timeout), and it panics"},
		{"RCU stall", stall("21", "20", "1", "0"), true, "not looked for"},
		{"RCU stall", stall("21", "", "", ""), true, "21s"}, {"RCU stall", stall("", "20", "", ""), true, "not known"},

		{"System RAM", ram(ranges(3)), true, "3 ranges, of at most 128"}, {"System RAM", ram(ranges(128)), true, "128 ranges"},
		{"System RAM", ram(ranges(131)), false, "131 ranges: the 128 largest are known: parts of user stacks that lie in the other 3.0 MiB are not read"},
		{"System RAM", ram("00000000-00000000 : System RAM\n"), false, "not known: addresses are hidden (CAP_SYS_ADMIN): no user stacks"},
		{"System RAM", ram(""), false, "not known"}, {"System RAM", files{}, false, "not known: "},
		{"NUMA balancing", numa("0\n"), true, "off"}, {"NUMA balancing", files{}, true, "not there"},
		{"NUMA balancing", numa("1\n"), false, "refused until its process touches it"}, {"NUMA balancing", numa("2\n"), false, "2 (kernel.numa_balancing)"},
		{"memory errors", meminfo("MemTotal: 1 kB\nHardwareCorrupted:     0 kB\n"), true, "none found; a BPF program"},
		{"memory errors", meminfo("HardwareCorrupted:     8 kB\n"), false, "8 kB found (HardwareCorrupted): there may be more: a BPF program"},
		{"memory errors", meminfo("MemTotal: 1 kB\n"), true, "not known; a BPF program"},

		{"kernel.sysrq", sysrq("1\n"), true, "1"}, {"kernel.sysrq", sysrq("8\n"), true, "8"}, {"kernel.sysrq", sysrq("511\n"), true, "511"},
		{"kernel.sysrq", sysrq("438\n"), false, "438"}, {"kernel.sysrq", sysrq("0\n"), false, "0"},
		{"crash kernel", crash("1\n"), true, "loaded"}, {"crash kernel", crash("0\n"), false, "not loaded"}, {"crash kernel", files{}, false, "CONFIG_CRASH_DUMP"},
		{"memory encryption", files{"proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu tdx_guest sse\n"}, false, "TDX"},
		{"memory encryption", files{"proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu tdx_guest sse\n"}, false, "cannot be read"},

		{"/run", run(root+tmpfs, root+tmpfs), true, "the host's"},                                                                              // one tmpfs
		{"/run", run(root, root+"28 27 0:9 / /runner rw - tmpfs tmpfs rw\n"), true, "the host's"},                                              // a directory of /
		{"/run", run("50 1 0:77 / / rw - overlay overlay rw\n51 50 254:0 /run /run rw - ext4 /dev/vda rw\n", root), true, "the host's"},        // bound from /
		{"/run", run(root+tmpfs+"60 40 0:24 / /run rw - tmpfs tmpfs rw\n", root+tmpfs), false, "not the host's: 0:24 /, process 1 has 0:23 /"}, // covered
		{"/run", run(root+"40 27 0:99 / /run rw - tmpfs tmpfs rw\n", root+tmpfs), false, "not the host's"},                                     // another tmpfs
		{"/run", run("50 1 254:0 /srv/root / rw - ext4 /dev/vda rw\n", root), false, "254:0 /srv/root/run"},                                    // another directory
		{"/run", run("50 1 0:77 / / rw - overlay overlay rw\n", root+tmpfs), false, "not kept apart"},                                          // the image's
		{"/run", elsewhere, false, "of a container (pid namespace)"},
		{"/run", run("", root), false, "no file system that this root sees holds /run"},
		{"/run", run(root, ""), false, "process 1"}, // which is out of sight
	} {
		d := c.files.doctor(t)
		d.find(c.fact)
		d.wantFact(t, c.fact, c.ok, c.words)
	}
	for arch, word := range map[string]string{"amd64": "panics the machine", "arm64": "kernel oops"} {
		d := files{}.doctor(t)
		d.add("", "memory errors", memoryErrors("", arch))
		d.wantFact(t, "memory errors", true, word)
	}
}

func TestHookFinding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hook  bpf.Hook
		wakes bool
		ok    bool
		words string
	}{
		{bpf.Hook{Event: bpf.EventPanic, Function: "vpanic", By: "fentry"}, true, true, "fentry/vpanic"},
		{bpf.Hook{Event: bpf.EventSysrq, Function: "__handle_sysrq", By: "fentry"}, true, false, "ordinary capture"},
		{bpf.Hook{Event: bpf.EventCrash, Err: errors.Join(errors.New("one"), errors.New("two"))}, false, false, "one; two"},
	} {
		f := hookFinding(c.hook, c.wakes)
		if (f.cost == "") != c.ok || !strings.Contains(f.value+": "+f.cost, c.words) {
			t.Errorf("%+v: %+v", c.hook, f)
		}
	}
}
