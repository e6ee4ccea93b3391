package bpf

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

// The release that a probe names is the one that brought it: here it is
// accepted from that release on, and refused before.
func TestProbesNameTheRelease(t *testing.T) {
	testneed.Live(t)
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	here := number(t, unix.ByteSliceToString(u.Release[:]))
	for _, p := range Probes() {
		if p.Err != nil && !p.Lacks() && !testneed.All() {
			t.Skip(p) // no rights to ask
		}
		if has := here >= number(t, p.Since); has != (p.Err == nil) {
			t.Errorf("on %s: %s, since %s: %v", unix.ByteSliceToString(u.Release[:]), p.Name, p.Since, p.Err)
		}
	}
}

func number(t *testing.T, release string) int {
	t.Helper()
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		t.Fatalf("release %q: %v", release, err)
	}
	return major*1000 + minor
}

// What the kernel lacks, and what somebody may not ask, are two things.
func TestLacks(t *testing.T) {
	refused := &ebpf.VerifierError{Cause: unix.EACCES}
	forbidden := &ebpf.VerifierError{Cause: unix.EPERM}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{fmt.Errorf("kfunc x: %w", ebpf.ErrNotSupported), true},
		{fmt.Errorf("load: %w", refused), true},
		{fmt.Errorf("load: %w", forbidden), false},
		{unix.EPERM, false},
		{errors.New("no BTF"), false},
	} {
		if got := (Probe{Err: c.err}).Lacks(); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

// Every program of the object has its row, every row its program.
func TestProbeTable(t *testing.T) {
	spec, err := loadProbeObject()
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.Programs) != len(probes) {
		t.Errorf("%d programs, %d rows", len(spec.Programs), len(probes))
	}
	for _, p := range probes {
		if spec.Programs[p.program] == nil {
			t.Errorf("%s: no program %s", p.Name, p.program)
		}
	}
}
