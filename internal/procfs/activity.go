package procfs

import "bytes"

// Activity is what shows that a CPU takes interrupts.
type Activity struct {
	Interrupts uint64 // taken, of every kind
	User, Idle uint64 // ticks, as /proc/stat has them: nice is user, iowait idle
}

// ParseInterrupts sums the columns of /proc/interrupts: by CPU, how many
// interrupts it took. Lines with fewer numbers than there are CPUs (ERR, MIS)
// belong to none.
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

// countsOf appends the numbers that a line begins with, at most n.
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

// ParseCPUTicks takes the lines of single CPUs out of /proc/stat. A CPU that
// sleeps without a tick, or is in user mode without one, is accounted for when
// the file is read.
func ParseCPUTicks(b []byte) (map[int]Activity, error) {
	out := map[int]Activity{}
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
		out[cpu] = Activity{User: ticks[0] + ticks[1], Idle: ticks[3] + ticks[4]}
	}
	return out, nil
}

func cpuNumber(name []byte, prefix string) (int, bool) {
	digits, ok := bytes.CutPrefix(name, []byte(prefix))
	n, isNumber := parseUint(digits)
	return int(n), ok && isNumber && n < 1<<20
}
