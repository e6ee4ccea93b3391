package topology

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxCPU is the highest CPU number a list may name. It bounds what "0-4000000000"
// makes us allocate. Linux itself has at most NR_CPUS CPUs, 8192 in the largest
// configuration.
const MaxCPU = 1<<16 - 1

// ErrBadList says that a CPU list is not of the form "0-3,5".
var ErrBadList = errors.New("bad CPU list")

// ParseCPUList reads the kernel's list form: numbers and ranges "a-b" (a ≤ b)
// separated by commas; blanks around them are allowed. The result ascends and has
// each CPU once, in whatever order the text names them and however often. An empty
// text is an empty list, and so is "(null)", which nohz_full holds if the kernel
// booted without that option. Errors are ErrBadList and name the part at fault.
func ParseCPUList(s string) ([]int, error) {
	s = strings.TrimSpace(s)
	if s == "" || s == "(null)" {
		return nil, nil
	}
	var cpus []int
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, err := parseRange(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		for cpu := lo; cpu <= hi; cpu++ {
			cpus = append(cpus, cpu)
		}
		// Sorting as we go keeps a hostile "0-65535,0-65535,…" at one set.
		if len(cpus) > 2*(MaxCPU+1) {
			cpus = normalize(cpus)
		}
	}
	return normalize(cpus), nil
}

// FormatCPUList writes cpus the way the kernel does: ascending, runs of two and
// more as ranges, "" for none. ParseCPUList gives the same set back.
func FormatCPUList(cpus []int) string {
	cpus = normalize(slices.Clone(cpus))
	var b strings.Builder
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(cpus[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(cpus[j]))
		}
		i = j + 1
	}
	return b.String()
}

func parseRange(part string) (lo, hi int, err error) {
	first, last, isRange := strings.Cut(part, "-")
	if !isRange {
		last = first
	}
	lo, okLo := parseCPU(first)
	hi, okHi := parseCPU(last)
	if !okLo || !okHi || hi < lo {
		return 0, 0, fmt.Errorf("%w: %q", ErrBadList, part)
	}
	return lo, hi, nil
}

// parseCPU reads a CPU number: digits only, without a sign.
func parseCPU(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	return int(n), err == nil && n <= MaxCPU
}

// normalize sorts in place and drops duplicates.
func normalize(cpus []int) []int {
	slices.Sort(cpus)
	return slices.Compact(cpus)
}

func intersect(a, b []int) []int {
	var out []int
	for _, cpu := range a {
		if slices.Contains(b, cpu) {
			out = append(out, cpu)
		}
	}
	return out
}
