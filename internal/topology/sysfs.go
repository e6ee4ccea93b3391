package topology

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"stackshot/internal/procfs"
)

const (
	cpuDir  = "devices/system/cpu"
	maxText = 4096     // size limit of a file that has a word or a number, bytes
	maxList = 64 << 10 // size limit of a file that lists CPUs, of which there may be thousands
)

// reader reads sysfs files and keeps the first error, so that callers check for it once,
// at the end.
type reader struct {
	sys, proc fs.FS
	err       error
}

// text gives a file's trimmed content, or "" and false if it cannot be read. That is no
// error: an attribute for which the platform has no value answers EINVAL or the like. A
// file longer than maxText is an error; no more than that is read of it.
func (r *reader) text(name string) (string, bool) { return r.upTo(maxText, name) }

func (r *reader) upTo(most int64, name string) (string, bool) {
	f, err := r.sys.Open(name)
	if err != nil {
		return "", false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		r.fail(name, fmt.Errorf("longer than %d bytes", most))
	}
	if err != nil || int64(len(b)) > most {
		return "", false
	}
	return strings.TrimSpace(string(b)), true
}

func (r *reader) list(name string) ([]int, bool) {
	s, ok := r.upTo(maxList, name)
	if !ok {
		return nil, false
	}
	cpus, err := ParseCPUList(s)
	if err != nil {
		r.fail(name, err)
		return nil, false
	}
	return cpus, true
}

func (r *reader) number(name string, absent int) int {
	s, ok := r.text(name)
	if !ok {
		return absent
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		r.fail(name, errors.Unwrap(err))
		return absent
	}
	return n
}

func (r *reader) fail(name string, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("/sys/%s: %w", name, err)
	}
}

// cpus reads every present CPU, without kinds and clusters.
func (r *reader) cpus() []CPU {
	online := r.online()
	present, _ := r.list(cpuDir + "/present")
	present = normalize(append(present, online...))
	isolation := r.isolation()
	cpus := make([]CPU, 0, len(present))
	for _, id := range present {
		cpu := CPU{ID: id, Cluster: -1, Package: -1, Online: slices.Contains(online, id), Isolation: isolation[id]}
		if cpu.Online {
			r.neighbours(&cpu, online)
		}
		cpus = append(cpus, cpu)
	}
	return cpus
}

// isolation reads which CPUs are isolated, and how.
func (r *reader) isolation() map[int]Reason {
	out := map[int]Reason{}
	for _, file := range []struct {
		name string
		why  Reason
	}{{cpuDir + "/isolated", Isolated}, {cpuDir + "/nohz_full", NohzFull}, {"fs/cgroup/cpuset.cpus.isolated", Partition}} {
		cpus, _ := r.list(file.name)
		for _, cpu := range cpus {
			// From 6.12 on the last list has the CPUs of isolcpus= in it too.
			if file.why != Partition || out[cpu]&Isolated == 0 {
				out[cpu] |= file.why
			}
		}
	}
	return out
}

// online reads the online CPUs. Some containers hide /sys; then they come from /proc/stat,
// which has a line for each online CPU.
func (r *reader) online() []int {
	if cpus, ok := r.list(cpuDir + "/online"); ok || r.err != nil {
		return cpus
	}
	b, err := fs.ReadFile(r.proc, "stat")
	if err != nil {
		return nil
	}
	ticks, _ := procfs.ParseCPUTicks(b)
	return slices.Sorted(maps.Keys(ticks))
}

func (r *reader) neighbours(cpu *CPU, online []int) {
	dir := fmt.Sprintf("%s/cpu%d", cpuDir, cpu.ID)
	cpu.Package = r.number(dir+"/topology/physical_package_id", -1)
	cpu.Capacity = uint32(max(0, r.number(dir+"/cpu_capacity", 0)))
	cpu.siblings = r.around(cpu.ID, dir+"/topology/cluster_cpus_list", online)
	cpu.lastLevel = r.lastLevel(cpu.ID, dir+"/cache", online)
	cpu.core = r.around(cpu.ID, dir+"/topology/core_cpus_list", online)
	if cpu.core == nil { // its name before 5.3
		cpu.core = r.around(cpu.ID, dir+"/topology/thread_siblings_list", online)
	}
	if cpu.core == nil {
		cpu.core = []int{cpu.ID}
	}
}

// around reads the online CPUs of a list that should name cpu itself; nil: it does not, or
// cannot be read.
func (r *reader) around(cpu int, name string, online []int) []int {
	cpus, ok := r.list(name)
	if !ok || !slices.Contains(cpus, cpu) {
		return nil
	}
	return intersect(cpus, online)
}

// lastLevel gives the CPUs that share cpu's highest-level unified or data cache.
func (r *reader) lastLevel(cpu int, dir string, online []int) []int {
	entries, err := fs.ReadDir(r.sys, dir)
	if err != nil {
		return nil
	}
	best, shared := 0, []int(nil)
	for _, e := range entries {
		index := dir + "/" + e.Name()
		kind, ok := r.text(index + "/type")
		level := r.number(index+"/level", 0)
		if !ok || kind == "Instruction" || level <= best {
			continue
		}
		if cpus := r.around(cpu, index+"/shared_cpu_list", online); cpus != nil {
			best, shared = level, cpus
		}
	}
	return shared
}
