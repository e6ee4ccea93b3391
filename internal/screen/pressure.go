package screen

import (
	"fmt"
	"strconv"
	"strings"

	"stackshot/kcdata"
)

// pressure is the pressure stall information of one resource: the share of the last 10 s, in
// percent, in which some threads waited for it, and in which all that had work did.
type pressure struct {
	some, full float64
	known      bool // some
	fullKnown  bool
}

// pressureOf takes one resource ("cpu", "memory", "io") from Snapshot.Pressure. Its lines are such as
// "memory full avg10=3.10 avg60=…" (Documentation/accounting/psi.rst). A line of another form
// tells nothing.
func pressureOf(text, resource string) (p pressure) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != resource {
			continue
		}
		value, ok := strings.CutPrefix(f[2], "avg10=")
		share, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil || !(share >= 0 && share <= 100) {
			continue
		}
		switch f[1] {
		case "some":
			p.some, p.known = share, true
		case "full":
			p.full, p.fullKnown = share, true
		}
	}
	return p
}

// pressureIn is that of a control group for memory.
func pressureIn(g *kcdata.Cgroup) pressure {
	if g.Present&kcdata.CgroupHasPressure == 0 {
		return pressure{}
	}
	share := func(hundredths uint32) float64 { return min(float64(hundredths)/100, 100) }
	return pressure{some: share(g.SomeAvg10), full: share(g.FullAvg10), known: true, fullKnown: true}
}

// meminfo returns the value of one line of /proc/meminfo, in bytes.
func meminfo(text, key string) (bytes uint64, ok bool) {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, key+":"); found {
			kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 53)
			return kib << 10, err == nil
		}
	}
	return 0, false
}

// words says what of the last 10 s was lost; "" if nothing was, or if that is not known. all are
// whose pressure it is: "all its threads".
func (p pressure) words(all, resource string) string {
	switch {
	case p.fullKnown && p.full >= 1:
		return fmt.Sprintf("%s waited for %s %.0f %% of 10 s", all, resource, p.full)
	case p.known && p.some >= 1:
		return fmt.Sprintf("threads waited for %s %.0f %% of 10 s", resource, p.some)
	}
	return ""
}

// measure is the share of time in which somebody waited.
func (p pressure) measure() string {
	if !p.known {
		return ""
	}
	return fmt.Sprintf("%.0f %%", p.some)
}
