package main

import (
	"errors"
	"strings"
	"testing"

	"stackshot/internal/bpf"
)

func TestDoctorPanic(t *testing.T) {
	t.Parallel()
	for mask, ok := range map[string]bool{"1": true, "8": true, "438": false, "0": false, "511": true} {
		d := files{"proc/sys/kernel/sysrq": mask + "\n"}.doctor(t)
		d.find("kernel.sysrq")
		d.wantFact(t, "kernel.sysrq", ok, mask)
	}
	for loaded, words := range map[string]string{"1\n": "loaded", "0\n": "not loaded", "": "CONFIG_CRASH_DUMP"} {
		f := files{}
		if loaded != "" {
			f["sys/kernel/kexec_crash_loaded"] = loaded
		}
		d := f.doctor(t)
		d.find("crash kernel")
		d.wantFact(t, "crash kernel", loaded == "1\n", words)
	}
	d := files{"proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu tdx_guest sse\n"}.doctor(t)
	d.find("memory encryption")
	d.wantFact(t, "memory encryption", false, "TDX", "cannot be read")
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
