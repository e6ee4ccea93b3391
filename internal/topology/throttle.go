package topology

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

const coolingDir = "class/thermal"

// Throttles finds those of the given CPUs that the kernel throttles now, and gives the
// reason for each, in words for people. It reads the machine this process runs on.
func Throttles(cpus []int) map[int]string { return ReadThrottles(os.DirFS("/sys"), cpus) }

// ReadThrottles is Throttles of a file system rooted at /sys. A CPU counts as
// throttled
//
//   - if a cooling device in its last state limits its cpufreq policy to the lowest
//     frequency of the hardware, and the hardware has more than one. Such devices are
//     cpufreq-cpuN (N: any CPU of the policy; drivers/thermal/cpufreq_cooling.c) and an
//     ACPI "Processor" (drivers/acpi/processor_thermal.c). If the device is not in its
//     last state, a low limit is somebody's setting and no throttling;
//   - if idle time is injected: by idle-cpuN on CPU N
//     (drivers/thermal/cpuidle_cooling.c), by intel_powerclamp on the CPUs of its
//     parameter cpumask, or on all CPUs before 6.3, which has no such parameter.
//
// Throttling by the hardware alone (PROCHOT, power limits) is not read. A file that is
// missing, or has another form, throttles no CPU.
func ReadThrottles(sys fs.FS, cpus []int) map[int]string {
	devices := activeCooling(sys)
	if len(devices) == 0 {
		return nil
	}
	r := reader{sys: sys}
	out := map[int]string{}
	for _, cpu := range cpus {
		whys := []string{r.heldLow(cpu, devices), r.idleInjected(cpu, devices)}
		whys = slices.DeleteFunc(whys, func(why string) bool { return why == "" })
		if len(whys) > 0 {
			out[cpu] = strings.Join(whys, " and ")
		}
	}
	return out
}

// cooling is one cooling device in action.
type cooling struct {
	kind  string // its type
	state int    // cur_state, above 0
	last  bool   // state is max_state
}

// A larger number is no answer of a cooling device, or of cpufreq.
const (
	maxState = 10_000
	maxKHz   = 100_000_000
)

func (c cooling) String() string { return fmt.Sprintf("%s, state %d", c.kind, c.state) }

// Types of cooling devices that throttle CPUs; a CPU number follows the last two.
const (
	acpiProcessor = "Processor"
	powerclamp    = "intel_powerclamp"
	freqOf        = "cpufreq-cpu"
	idleOf        = "idle-cpu"
)

// activeCooling lists the cooling devices of CPUs that are in action. It does not read the
// state of other devices: that of a fan may come from slow firmware.
func activeCooling(sys fs.FS) (out []cooling) {
	entries, err := fs.ReadDir(sys, coolingDir)
	if err != nil {
		return nil
	}
	r := reader{sys: sys}
	for _, e := range entries {
		dir := coolingDir + "/" + e.Name()
		kind, ok := r.text(dir + "/type")
		if !ok || !strings.HasPrefix(e.Name(), "cooling_device") {
			continue
		}
		_, freq := numbered(kind, freqOf)
		_, idle := numbered(kind, idleOf)
		if kind != acpiProcessor && kind != powerclamp && !freq && !idle {
			continue
		}
		if c := r.cooling(dir, kind); c.state > 0 {
			out = append(out, c)
		}
	}
	return out
}

// cooling reads the device at dir. intel_powerclamp at rest has state -1, which reads as 0.
func (r *reader) cooling(dir, kind string) cooling {
	state, most := r.bounded(dir+"/cur_state", maxState), r.bounded(dir+"/max_state", maxState)
	return cooling{kind, state, most > 0 && state >= most}
}

// bounded reads a number from 1 to most; 0: the file has no such number.
func (r *reader) bounded(name string, most int) int {
	if n := r.number(name, 0); n > 0 && n <= most {
		return n
	}
	return 0
}

// heldLow says which device holds cpu at its lowest frequency; "": none does.
func (r *reader) heldLow(cpu int, devices []cooling) string {
	dir := fmt.Sprintf("%s/cpu%d", cpuDir, cpu)
	kHz := func(name string) int { return r.bounded(dir+"/cpufreq/"+name, maxKHz) }
	now, least := kHz("scaling_max_freq"), kHz("cpuinfo_min_freq")
	if now == 0 || now > least || kHz("cpuinfo_max_freq") <= least {
		return ""
	}
	by := r.cooling(dir+"/firmware_node/thermal_cooling", acpiProcessor)
	related, _ := r.text(dir + "/cpufreq/related_cpus")
	policy := append(strings.Fields(related), strconv.Itoa(cpu))
	for _, c := range devices {
		if of, ok := numbered(c.kind, freqOf); ok && slices.Contains(policy, strconv.Itoa(of)) && !by.last {
			by = c
		}
	}
	if !by.last {
		return ""
	}
	return fmt.Sprintf("held at its lowest frequency, %d MHz (cooling device %v)", now/1000, by)
}

// idleInjected says which device injects idle time on cpu; "": none does.
func (r *reader) idleInjected(cpu int, devices []cooling) string {
	for _, c := range devices {
		of, one := numbered(c.kind, idleOf)
		if one && of == cpu || c.kind == powerclamp && r.clamped(cpu) {
			return fmt.Sprintf("forced to idle (cooling device %v)", c)
		}
	}
	return ""
}

// clamped reports whether intel_powerclamp acts on cpu. Its parameter cpumask is groups of
// 32 bits in hexadecimal, the highest first.
func (r *reader) clamped(cpu int) bool {
	mask, ok := r.text("module/intel_powerclamp/parameters/cpumask")
	if !ok {
		return true
	}
	groups := strings.Split(mask, ",")
	i := len(groups) - 1 - cpu/32
	if i < 0 {
		return false
	}
	bits, err := strconv.ParseUint(groups[i], 16, 32)
	return err == nil && bits>>(cpu%32)&1 != 0
}

// numbered takes the CPU number from a name that is prefix and such a number.
func numbered(name, prefix string) (int, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	cpu, isNumber := parseCPU(digits)
	return cpu, ok && isNumber
}
