package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

func TestDoctor(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	needRoot(t)
	o := stackshot(t, "doctor", "--json")
	var got diagnosis
	if err := json.Unmarshal([]byte(o.stdout), &got); err != nil {
		t.Fatalf("%v: %s%s", err, o.stdout, o.stderr)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, []byte(o.stdout)); err != nil {
		t.Error(err)
	}
	t.Logf("doctor: %s", &line) // read by the rig, for its table of kernels
	if got.Format != "stackshot-doctor" || got.Version != 1 || got.Release == "" {
		t.Errorf("%+v", got)
	}
	if names(got.Engines) != "trap pull procfs" || names(got.Isolation) != "irqoff preemptoff fifo none" {
		t.Errorf("engines %+v, isolation %+v", got.Engines, got.Isolation)
	}
	wantReasons(t, got)
	if best := got.Engines[1].OK && got.Isolation[2].OK; best != (o.code == exitWhole) || !best && o.code != exitIncomplete {
		t.Errorf("exit code %d with %+v, %+v", o.code, got.Engines, got.Isolation)
	}
	if testneed.All() && !got.Engines[1].OK {
		t.Errorf("no pull: %s", got.Engines[1].Why)
	}
	have := map[string]bool{}
	for _, f := range got.Facts {
		have[f.Name] = true
		if f.OK == (f.Cost != "") || f.Value == "" {
			t.Errorf("a fact that is bad has a cost, a good one none: %+v", f)
		}
	}
	for _, name := range []string{
		"BTF", "lockdown", "kptr_restrict", "perf_event_max_stack", "perf_event_paranoid", "unprivileged_bpf_disabled",
		"RT_GROUP_SCHED", "CAP_BPF", "CAP_PERFMON", "CAP_SYS_ADMIN", "CAP_SYS_NICE", "CAP_SYSLOG", "CAP_SYS_PTRACE",
		"CAP_DAC_READ_SEARCH", "CAP_IPC_LOCK", "user namespace", "isolated CPUs", "nohz_full CPUs",
		"KVM guests", "pid namespace", "time namespace", "memory available", "memory pressure",
		"System RAM", "NUMA balancing", "memory errors", "lock", "/run", "clock source", "hard lockup detector",
		"soft lockup detector", "RCU stall", "SysRq hook", "panic hook", "crash hook", "kernel.sysrq", "crash kernel", "memory encryption", "armed",
	} {
		if !have[name] {
			t.Errorf("nothing about %s", name)
		}
	}
	text := stackshot(t, "doctor")
	if want := "auto takes: engine " + got.Auto.Engine + ", isolation " + got.Auto.Isolation + ","; !strings.Contains(text.stdout, want) {
		t.Errorf("the text does not hold %q", want)
	}
	for _, p := range got.Probes {
		if !strings.Contains(text.stdout, p.Name+" (Linux "+p.Since+")") {
			t.Errorf("the text does not hold %s", p.Name)
		}
	}
	for _, f := range got.Facts {
		if !strings.Contains(text.stdout, f.Name) {
			t.Errorf("the text does not hold %s", f.Name)
		}
	}
}

// wantReasons: whatever is not there has its reason, and auto takes the first
// engine that works.
func wantReasons(t *testing.T, got diagnosis) {
	t.Helper()
	all := slices.Concat(got.Engines, got.Isolation)
	lacks := map[string]bool{}
	for _, p := range got.Probes {
		all = append(all, p.option)
		lacks[p.Name] = !p.OK
	}
	for _, o := range all {
		if o.OK == (o.Why != "") {
			t.Errorf("%+v", o)
		}
	}
	first := got.Engines[slices.IndexFunc(got.Engines, func(o option) bool { return o.OK })].Name
	if got.Auto.Engine != first && got.Auto.Why == "" || (got.Auto.Engine == "trap") != (got.Auto.Why == "") || got.Auto.MaxPauseNs <= 0 {
		t.Errorf("auto %+v, engines %+v", got.Auto, got.Engines)
	}
	if irqoff := got.Engines[0].OK && !lacks["bpf_local_irq_save"]; irqoff != got.Isolation[0].OK || irqoff != (got.Auto.Isolation == "irqoff") {
		t.Errorf("auto %+v, isolation %+v, probes %+v", got.Auto, got.Isolation, got.Probes)
	}
}

func names(list []option) string {
	var out []string
	for _, o := range list {
		out = append(out, o.Name)
	}
	return strings.Join(out, " ")
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	yes, no := func(n string) option { return option{Name: n, OK: true} }, func(n string) option { return option{Name: n, Why: "x"} }
	for _, c := range []struct {
		engines, levels []option
		auto            choice
		code            int
		words           string
	}{
		{[]option{yes("trap"), yes("pull")}, []option{yes("irqoff"), yes("fifo")}, choice{Engine: "trap", Isolation: "irqoff"}, exitWhole, ""},
		{[]option{no("trap"), yes("pull")}, []option{no("irqoff"), yes("fifo")}, choice{Engine: "pull", Isolation: "fifo"}, exitWhole, ""},
		{[]option{yes("trap"), yes("pull")}, []option{yes("irqoff"), no("fifo")}, choice{Engine: "trap", Isolation: "irqoff"}, exitIncomplete, "engine trap, isolation irqoff"},
		{[]option{no("trap"), yes("pull")}, []option{no("irqoff"), no("fifo")}, choice{Engine: "pull", Isolation: "none"}, exitIncomplete, "engine pull, isolation none"},
		{[]option{no("trap"), no("pull")}, []option{no("irqoff"), yes("fifo")}, choice{Engine: "procfs", Isolation: "none"}, exitIncomplete, "engine procfs, isolation none"},
	} {
		d := &doctor{diagnosis: diagnosis{Engines: c.engines, Isolation: c.levels, Auto: c.auto}}
		err := d.verdict()
		if exitCode(err) != c.code || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%v, %v: %v", c.engines, c.levels, err)
		}
	}
}

func TestKernelConfig(t *testing.T) {
	t.Parallel()
	config := []byte("# CONFIG_A is not set\nCONFIG_B=y\nCONFIG_C=m\nCONFIG_D=n\nCONFIG_BB=\"y\"\n")
	for name, want := range map[string]bool{"CONFIG_A": false, "CONFIG_B": true, "CONFIG_C": true, "CONFIG_D": false, "CONFIG_BB": false, "CONFIG_E": false} {
		if got := isSet(config, name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, err := gunzip([]byte("not gzip")); err == nil {
		t.Error("no error for what is not gzip")
	}
}

func TestIsMonitor(t *testing.T) {
	t.Parallel()
	for comm, want := range map[string]bool{"qemu-system-x86": true, "qemu-kvm": true, "kvm": true, "firecracker": true, "kvm-nx-lpage-re": false, "bash": false, "": false} {
		if got := isMonitor(comm); got != want {
			t.Errorf("%q: %v", comm, got)
		}
	}
}

// A time namespace is named with its offsets, and one that is not known as a loss.
func TestDoctorTimeNamespace(t *testing.T) {
	for _, c := range []struct {
		monotonic, boottime int64
		err                 error
		ok                  bool
		want                string
	}{
		{0, 0, nil, true, "none, or one with the machine's clocks"},
		{100_000_000_000, -5, nil, true, "CLOCK_MONOTONIC is 1m40s off the machine's, CLOCK_BOOTTIME -5ns: taken off in what is recorded"},
		{0, 1, nil, true, "CLOCK_MONOTONIC is 0s off the machine's, CLOCK_BOOTTIME 1ns: taken off in what is recorded"},
		{0, 0, os.ErrPermission, false, "not known: permission denied"},
	} {
		var d doctor
		d.add("machine", "time namespace", timeNamespace(c.monotonic, c.boottime, c.err))
		if len(d.Facts) != 1 || d.Facts[0].OK != c.ok || d.Facts[0].Value != c.want || d.Facts[0].Name != "time namespace" {
			t.Errorf("%+v, want %+v", d.Facts, c)
		}
	}
}
