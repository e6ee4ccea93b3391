package procfs

import "bytes"

// CPUActivity holds counts by which one sees whether a CPU takes interrupts.
type CPUActivity struct {
	Interrupts uint64 // taken, of every kind
	User, Idle uint64 // ticks of /proc/stat; User includes nice, Idle iowait
}

// ParseInterrupts sums the columns of /proc/interrupts: the number of interrupts that
// each CPU took. It skips lines with fewer numbers than there are CPUs (ERR, MIS).
func ParseInterrupts(b []byte) (map[int]uint64, error) {
	head, rest, _ := bytes.Cut(b, []byte("\n"))
	var cpus []int
	for name := range bytes.FieldsSeq(head) {
		n, ok := cpuNumber(name, "CPU")
		if !ok {
			return nil, syntaxError("interrupts", "header", name)
		}
		cpus = append(cpus, n)
	}
	if len(cpus) == 0 {
		return nil, syntaxError("interrupts", "header", head)
	}
	sums := make(map[int]uint64, len(cpus))
	row := make([]uint64, 0, len(cpus))
	for line := range bytes.Lines(rest) {
		_, counts, _ := bytes.Cut(line, []byte(":"))
		if row = countsOf(row[:0], counts, len(cpus)); len(row) < len(cpus) {
			continue
		}
		for i, n := range row {
			sums[cpus[i]] += n
		}
	}
	return sums, nil
}

// countsOf appends the numbers at the start of a line, at most n.
func countsOf(row []uint64, line []byte, n int) []uint64 {
	for field := range bytes.FieldsSeq(line) {
		v, ok := parseUint(field)
		if !ok || len(row) == n {
			break
		}
		row = append(row, v)
	}
	return row
}

// ParseCPUTicks reads the lines of single CPUs in /proc/stat, one per online CPU. They
// include the time of a CPU that idles, or runs in user mode, without a tick: the kernel
// adds it when the file is read.
func ParseCPUTicks(b []byte) (map[int]CPUActivity, error) {
	out := map[int]CPUActivity{}
	for line := range bytes.Lines(b) {
		name, rest, _ := bytes.Cut(line, []byte(" "))
		cpu, ok := cpuNumber(name, "cpu")
		if !ok {
			continue
		}
		ticks := countsOf(nil, rest, 5) // user nice system idle iowait
		if len(ticks) < 5 {
			return nil, syntaxError("stat", "cpu", line)
		}
		out[cpu] = CPUActivity{User: ticks[0] + ticks[1], Idle: ticks[3] + ticks[4]}
	}
	return out, nil
}

// cpuNumber reads a name that is prefix and the number of a CPU.
func cpuNumber(name []byte, prefix string) (int, bool) {
	digits, ok := bytes.CutPrefix(name, []byte(prefix))
	n, isNumber := parseUint(digits)
	return int(n), ok && isNumber && n < 1<<20
}
