package topology

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// cooler adds a cooling device of ten states as /sys/class/thermal shows it.
func (b box) cooler(n int, kind, state string) {
	b.put(fmt.Sprintf("%s/cooling_device%d/type", coolingDir, n), "%s", kind)
	b.put(fmt.Sprintf("%s/cooling_device%d/cur_state", coolingDir, n), "%s", state)
	b.put(fmt.Sprintf("%s/cooling_device%d/max_state", coolingDir, n), "9")
}

// policy adds a cpufreq policy, as each of its CPUs shows it.
func (b box) policy(cpus []int, most, least int) {
	related := strings.Trim(fmt.Sprint(cpus), "[]")
	for _, id := range cpus {
		b.cpu(id, "cpufreq/related_cpus", "%s", related)
		b.cpu(id, "cpufreq/scaling_max_freq", "%d", most)
		b.cpu(id, "cpufreq/cpuinfo_min_freq", "%d", least)
		b.cpu(id, "cpufreq/cpuinfo_max_freq", "3200000")
	}
}

// acpiCooled is a policy per CPU and ACPI's cooling device for each, as x86 has
// them; the CPUs in hot are held at their lowest frequency by theirs.
func acpiCooled(hot ...int) box {
	b := smp4()
	for id := range 4 {
		most, state := 3_200_000, "0"
		if slices.Contains(hot, id) {
			most, state = 800_000, "3"
		}
		b.policy([]int{id}, most, 800_000)
		b.cooler(id, "Processor", state)
		b.cpu(id, "firmware_node/thermal_cooling/cur_state", "%s", state)
		b.cpu(id, "firmware_node/thermal_cooling/max_state", "3")
	}
	return b
}

// littleCooled: the little cores of bigLittle are one policy, cooled as one.
func littleCooled() box {
	b := bigLittle()
	b.policy([]int{0, 1, 2, 3}, 300_000, 300_000)
	b.policy([]int{4, 5}, 1_000_000, 300_000)
	b.cooler(0, "cpufreq-cpu0", "9")
	b.cooler(1, "cpufreq-cpu4", "4")
	b.cooler(2, "pwm-fan", "2")
	return b
}

func throttled(build func() box, change func(box)) func() box {
	return func() box {
		b := build()
		change(b)
		return b
	}
}

func TestThrottles(t *testing.T) {
	const low, forced = "held at its lowest frequency, ", "forced to idle (cooling device "
	for _, c := range []struct {
		name  string
		build func() box
		want  string // CPU=reason, joined by a semicolon
	}{
		{"nothing to cool", smp4, ""},
		{"cool", func() box { return acpiCooled() }, ""},
		{"one hot by ACPI", func() box { return acpiCooled(2) }, "2=" + low + "800 MHz (cooling device Processor, state 3)"},
		{"a cluster by its policy", littleCooled,
			"0=" + low + "300 MHz (cooling device cpufreq-cpu0, state 9);1=" + low + "300 MHz (cooling device cpufreq-cpu0, state 9);" +
				"2=" + low + "300 MHz (cooling device cpufreq-cpu0, state 9);3=" + low + "300 MHz (cooling device cpufreq-cpu0, state 9)"},
		{"kept low by hand", throttled(smp4, func(b box) { b.policy([]int{0, 1}, 800_000, 800_000); b.cooler(0, "Processor", "0") }), ""},
		{"low by hand while another is cooled", throttled(func() box { return acpiCooled(1) }, func(b box) { b.policy([]int{3}, 800_000, 800_000) }),
			"1=" + low + "800 MHz (cooling device Processor, state 3)"},
		{"cooled, not to the least", throttled(func() box { return acpiCooled(1) }, func(b box) { b.policy([]int{1}, 801_000, 800_000) }), ""},
		{"low by hand, cooled a little", throttled(littleCooled, func(b box) { b.cooler(0, "cpufreq-cpu0", "1") }), ""},
		{"low by hand, cooled a little by ACPI", throttled(func() box { return acpiCooled(2) }, func(b box) {
			b.cpu(2, "firmware_node/thermal_cooling/cur_state", "1")
		}), ""},
		{"its last state is not known", throttled(func() box { return acpiCooled(2) }, func(b box) {
			delete(b, cpuDir+"/cpu2/firmware_node/thermal_cooling/max_state")
		}), ""},
		{"one frequency", throttled(func() box { return acpiCooled(2) }, func(b box) {
			b.cpu(2, "cpufreq/cpuinfo_max_freq", "800000")
		}), ""},
		{"a state that is none", throttled(func() box { return acpiCooled(2) }, func(b box) {
			b.cpu(2, "firmware_node/thermal_cooling/cur_state", "9223372036854775807")
			b.cooler(9, "idle-cpu0", "9223372036854775807")
			b.cooler(10, "intel_powerclamp", "10001")
		}), ""},
		{"a frequency that is none", throttled(func() box { return acpiCooled(2) }, func(b box) {
			for _, name := range []string{"scaling_max_freq", "cpuinfo_min_freq"} {
				b.cpu(2, "cpufreq/"+name, "9223372036854775806")
			}
			b.cpu(2, "cpufreq/cpuinfo_max_freq", "9223372036854775807")
		}), ""},
		{"a file without end", throttled(smp4, func(b box) { b.cooler(0, "idle-cpu1", "30"+strings.Repeat(" ", maxText)) }), ""},
		{"forced to idle", throttled(smp4, func(b box) { b.cooler(0, "idle-cpu3", "40") }), "3=" + forced + "idle-cpu3, state 40)"},
		{"both", throttled(func() box { return acpiCooled(0) }, func(b box) { b.cooler(9, "idle-cpu0", "1") }),
			"0=" + low + "800 MHz (cooling device Processor, state 3) and " + forced + "idle-cpu0, state 1)"},
		{"powerclamp at rest", throttled(smp4, func(b box) { b.cooler(0, "intel_powerclamp", "-1") }), ""},
		{"powerclamp before 6.3", throttled(offline1, func(b box) { b.cooler(0, "intel_powerclamp", "25") }),
			"0=" + forced + "intel_powerclamp, state 25);2=" + forced + "intel_powerclamp, state 25);3=" + forced + "intel_powerclamp, state 25)"},
		{"powerclamp of some", throttled(smp4, func(b box) {
			b.cooler(0, "intel_powerclamp", "25")
			b.put("module/intel_powerclamp/parameters/cpumask", "0,0000000a")
		}), "1=" + forced + "intel_powerclamp, state 25);3=" + forced + "intel_powerclamp, state 25)"},
		{"nonsense", throttled(func() box { return acpiCooled(1) }, func(b box) {
			b.cooler(0, "cpufreq-cpu", "3")
			b.cooler(2, "idle-cpu-1", "3")
			b.cooler(3, "idle-cpu1x", "3")
			b.cooler(4, "idle-cpu1", "often")
			b.cpu(1, "cpufreq/scaling_max_freq", "<unknown>")
		}), ""},
	} {
		b := c.build()
		got := ReadThrottles(fstest.MapFS(b), read(t, b).Online())
		var text []string
		for cpu := range 8 {
			if got[cpu] != "" {
				text = append(text, fmt.Sprintf("%d=%s", cpu, got[cpu]))
			}
		}
		if s := strings.Join(text, ";"); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
}

// A throttled CPU is stopped and does not work, unless it was named or there is
// no other.
func TestThrottledCPUDoesNotWork(t *testing.T) {
	for _, c := range []struct {
		machine           func() box
		o                 Options
		stop, work, spare string
		main              int
	}{
		{func() box { return acpiCooled(0, 2) }, Options{Initiator: 0}, "0-3", "1,3", "0,2", 1},
		{func() box { return acpiCooled(0, 2) }, Options{Initiator: 3}, "0-3", "1,3", "0,2", 3},
		{func() box { return acpiCooled(0, 2) }, Options{Cpus: "0,1", Initiator: 0}, "0-3", "0-1", "", 0},
		{func() box { return acpiCooled(0, 1, 2, 3) }, Options{Initiator: 2}, "0-3", "0-3", "", 2},
		{func() box { return acpiCooled(1) }, Options{Allowed: []int{1}}, "1", "1", "", 1},
		{littleCooled, Options{Initiator: 1}, "0-5", "4-5", "0-3", 4},
	} {
		b := c.machine()
		top := read(t, b)
		cool, err := top.Plan(c.o)
		if err != nil {
			t.Fatal(err)
		}
		p, err := cool.With(ReadThrottles(fstest.MapFS(b), top.Online()))
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, p)
		var spare []int
		for _, cpu := range top.Online() {
			if p.Spared(cpu) {
				spare = append(spare, cpu)
			}
		}
		stop, work := FormatCPUList(p.Stop), FormatCPUList(p.Work)
		if stop != c.stop || work != c.work || p.Main != c.main || FormatCPUList(spare) != c.spare {
			t.Errorf("%+v: stop %s work %s spared %v main %d, want %+v", c.o, stop, work, spare, p.Main, c)
		}
		if back, err := p.With(nil); err != nil || !slices.Equal(back.Work, cool.Work) || back.Main != cool.Main {
			t.Errorf("%+v: cooled down it works on %v, before on %v", c.o, back.Work, cool.Work)
		}
	}
}

// Whatever is throttled, the plan holds its invariants and stops the same CPUs.
func TestThrottleChangesWorkAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for name, build := range machines {
		top := read(t, build())
		for range 100 {
			o := Options{StopIsolated: r.IntN(2) == 0, Initiator: r.IntN(10) - 1}
			cool, err := top.Plan(o)
			if err != nil {
				continue
			}
			hot := map[int]string{}
			for _, cpu := range randomCPUs(r) {
				hot[cpu] = "hot"
			}
			p, err := cool.With(hot)
			if err != nil {
				t.Fatalf("%s %+v: %v", name, o, err)
			}
			checkPlan(t, p)
			if !slices.Equal(p.Stop, cool.Stop) || !slices.Equal(p.Left, cool.Left) {
				t.Errorf("%s: stop %v, left %v; without heat %v, %v", name, p.Stop, p.Left, cool.Stop, cool.Left)
			}
			works := slices.ContainsFunc(p.Work, func(cpu int) bool { return hot[cpu] != "" })
			if all := !slices.ContainsFunc(p.Stop, func(cpu int) bool { return hot[cpu] == "" }); works != all {
				t.Errorf("%s: work %v of %v, throttled %v", name, p.Work, p.Stop, hot)
			}
		}
	}
}

// Where this machine has ACPI's cooling devices, each is found by its CPU, as
// ReadThrottles looks for it.
func TestACPICoolingIsFoundByCPU(t *testing.T) {
	sys := os.DirFS("/sys")
	r := reader{sys: sys}
	entries, _ := fs.ReadDir(sys, coolingDir) // none where there is nothing to cool
	devices, found := 0, 0
	for _, e := range entries {
		if kind, _ := r.text(coolingDir + "/" + e.Name() + "/type"); kind == acpiProcessor {
			devices++
		}
	}
	top, err := Machine()
	if err != nil {
		t.Fatal(err)
	}
	for _, cpu := range top.Online() {
		if kind, _ := r.text(fmt.Sprintf("%s/cpu%d/firmware_node/thermal_cooling/type", cpuDir, cpu)); kind == acpiProcessor {
			found++
		}
	}
	if found < min(devices, len(top.Online())) {
		t.Errorf("%d cooling devices of processors, %d of %d CPUs have one", devices, found, len(top.Online()))
	}
	t.Logf("%d cooling devices, %d found by CPU, throttled: %v", devices, found, Throttles(top.Online()))
}
