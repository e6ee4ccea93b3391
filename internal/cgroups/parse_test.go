package cgroups

import (
	"errors"
	"fmt"
	"testing"

	"stackshot/kcdata"
)

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]uint64{
		"max\n": kcdata.CgroupUnlimited, "0\n": 0, "67108864\n": 64 << 20, "9223372036854771712\n": kcdata.CgroupUnlimited,
		"9223372036854710272\n": kcdata.CgroupUnlimited, "9223372036854000000\n": 9223372036854000000, "18446744073709551615": kcdata.CgroupUnlimited,
	} {
		if got, err := parseLimit([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "\n", "max ", "-1\n", "+1\n", "1_0\n", "0x10\n", "18446744073709551616\n", "1\n2\n"} {
		if got, err := parseLimit([]byte(text)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	if _, err := parseAmount([]byte("max\n")); !errors.Is(err, ErrSyntax) {
		t.Errorf("an amount of max: %v", err)
	}
}

// What the kernels wrote.
func TestParseFiles(t *testing.T) {
	g := newGroup(key{2, "/a"})
	for _, err := range []error{
		g.events([]byte("low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\nsock_throttled 7\n")),
		g.pressure([]byte("some avg10=1.53 avg60=0.07 avg300=0.00 total=51273\nfull avg10=100.00 avg60=12.30 avg300=0.00 total=18446744073709551615\n")),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := kcdata.LinuxCgroup{
		Version: 2, Present: kcdata.CgroupHasEvents | kcdata.CgroupHasOOMKill | kcdata.CgroupHasGroupKill | kcdata.CgroupHasPressure,
		LowEvents: 1, HighEvents: 2, MaxEvents: 3, OOMEvents: 4, OOMKill: 5, OOMGroupKill: 6,
		SomeAvg10: 153, SomeAvg60: 7, SomeTotalUs: 51273, FullAvg10: 10000, FullAvg60: 1230, FullTotalUs: 1<<64 - 1,
	}
	if g.LinuxCgroup != want {
		t.Errorf("%+v", g.LinuxCgroup)
	}
	g = newGroup(key{1, "/a"})
	if err := g.oomControl([]byte("oom_kill_disable 1\nunder_oom 1\noom_kill 9\n")); err != nil || g.OOMKill != 9 ||
		g.Flags != kcdata.CgroupUnderOOM|kcdata.CgroupNoOOMKill || g.Present != kcdata.CgroupHasOOM|kcdata.CgroupHasOOMKill {
		t.Errorf("%v, %+v", err, g.LinuxCgroup)
	}
	g = newGroup(key{1, "/a"})
	if err := g.oomControl([]byte("oom_kill_disable 0\nunder_oom 0\n")); err != nil || g.Flags != 0 || g.Present != kcdata.CgroupHasOOM { // before 4.13
		t.Errorf("%v, %+v", err, g.LinuxCgroup)
	}
	for _, text := range []string{"some avg10=1.5 avg60=0.00 avg300=0.00 total=1\n", "some total=1\n", "\n", "some avg10=0.00\nfull avg10=-1.00\n"} {
		if _, _, err := parsePressure([]byte(text)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What is written as the kernel writes it is read back; no bytes are too odd.
func FuzzEvents(f *testing.F) {
	f.Add(uint64(0), uint64(7), uint64(1<<64-1), []byte("low 1\n"))
	f.Add(uint64(3), uint64(0), uint64(9), []byte("max\n"))
	f.Fuzz(func(t *testing.T, low, most, kill uint64, odd []byte) {
		text := fmt.Sprintf("low %d\nhigh 0\nmax %d\noom 0\noom_kill %d\n", low, most, kill)
		g := newGroup(key{2, "/"})
		if err := g.events([]byte(text)); err != nil || g.LowEvents != low || g.MaxEvents != most || g.OOMKill != kill {
			t.Errorf("%q: %v, %+v", text, err, g.LinuxCgroup)
		}
		err := parseCounts(odd, func(name string, n uint64) {
			if name == "" {
				t.Errorf("%q: a count without a name", odd)
			}
		})
		if err != nil && !errors.Is(err, ErrSyntax) {
			t.Error(err)
		}
	})
}

func FuzzPressure(f *testing.F) {
	f.Add(uint16(0), uint16(10000), uint64(3), []byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull\n"))
	f.Fuzz(func(t *testing.T, a, b uint16, total uint64, odd []byte) {
		line := fmt.Sprintf("avg10=%d.%02d avg60=%d.%02d avg300=0.00 total=%d\n", a/100, a%100, b/100, b%100, total)
		some, full, err := parsePressure([]byte("some " + line + "full " + line))
		if want := (pressure{uint32(a), uint32(b), total}); err != nil || some != want || full != want {
			t.Errorf("%q: %+v, %+v, %v", line, some, full, err)
		}
		if _, _, err := parsePressure(odd); err != nil && !errors.Is(err, ErrSyntax) {
			t.Error(err)
		}
	})
}
