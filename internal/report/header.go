package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"stackshot/kcdata"
)

// header says whose picture this is, then what limits trust in it (R3), then
// how it was taken.
func (v *view) header(l *lines) {
	l.colored(bold, func() { l.words("", "%s", v.title()) })
	l.colored(red, func() {
		for _, s := range v.alarms() {
			l.words("!! ", "%s", s)
		}
	})
	if s := v.howTaken(); s != "" {
		l.words("", "%s", s)
	}
	if s := v.atomicity(); s != "" {
		l.words("", "%s", s)
	}
	if v.allChains {
		l.words("", "user stacks %s", chainText)
	}
	if s := v.machineLoad(); s != "" {
		l.words("", "%s", s)
	}
	if v.s.Request != "" {
		l.words("", "asked for: %s", Clean(v.s.Request))
	}
}

// title is host, kernel, time.
func (v *view) title() string {
	s := v.s
	parts := []string{"stackshot of " + Clean(cmp.Or(s.Hostname, "unknown host"))}
	if s.Delta {
		parts[0] = "delta " + parts[0]
	}
	parts = append(parts, strings.TrimRight("Linux "+Clean(cmp.Or(s.Release, "of unknown release"))+" "+Clean(s.Arch), " "))
	if s.HasMachine && s.Machine.RealtimeNs > 0 {
		t := time.Unix(0, int64(min(s.Machine.RealtimeNs, 1<<62))).UTC()
		parts = append(parts, t.Format("2006-01-02 15:04:05.000 UTC"))
	}
	if s.HasMachine && s.Machine.BoottimeNs > 0 {
		parts = append(parts, "up "+duration(s.Machine.BoottimeNs))
	}
	return strings.Join(parts, ", ")
}

// howTaken is the line about the stop.
func (v *view) howTaken() string {
	s := v.s
	var parts []string
	if s.HasCapture {
		c := &s.Capture
		tries := ""
		if c.Tries > 1 {
			tries = fmt.Sprintf(" in %d tries", c.Tries)
		}
		parts = append(parts, "stopped for "+duration(c.StoppedNs)+tries)
		if c.Vanished > 0 {
			parts = append(parts, fmt.Sprintf("%s ended meanwhile", count(int(c.Vanished), "task")))
		}
	}
	if n := len(s.CPUs); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s stopped", len(v.cpusWith(kcdata.CPUStopped)), count(n, "CPU")))
	}
	if s.Engine != "" {
		parts = append(parts, "engine "+Clean(s.Engine))
	}
	if s.Isolation != "" {
		parts = append(parts, "isolation "+Clean(s.Isolation))
	}
	return strings.Join(parts, ", ")
}

// ranShown is how many of the threads that ran the header names.
const ranShown = 4

// atomicity says how much of one instant the picture is.
func (v *view) atomicity() string {
	a := v.s.Atomicity
	if a == nil {
		return ""
	}
	when := "while they were recorded"
	if a.Method == kcdata.AtomicityInWindow && v.s.Isolation != "none" {
		when = "during the window"
	}
	s := fmt.Sprintf("%d of %s ran %s (%s)", a.Ran, count(int(a.Compared), "thread"), when, duration(a.SpanNs))
	for i, r := range v.s.Ran {
		if i == ranShown {
			s += ", ..."
			break
		}
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		s += sep + v.threadWords(r.Tgid, r.Tid)
	}
	if n := int(a.Gone + a.Missed); n > 0 {
		s += fmt.Sprintf("; %s could not be compared", count(n, "more thread"))
	}
	return s
}

// threadWords names a thread for a sentence.
func (v *view) threadWords(tgid, tid uint32) string {
	for _, t := range v.s.Tasks {
		if t.ID == uint64(tgid) {
			return fmt.Sprintf("%s tid %d", who(t), tid)
		}
	}
	return fmt.Sprintf("tid %d of task %d", tid, tgid)
}

// machineLoad is the line about load and memory.
func (v *view) machineLoad() string {
	var parts []string
	if f := strings.Fields(v.s.Loadavg); len(f) >= 3 {
		parts = append(parts, "load "+Clean(strings.Join(f[:3], " ")))
	}
	total, ok1 := meminfo(v.s.Meminfo, "MemTotal:")
	avail, ok2 := meminfo(v.s.Meminfo, "MemAvailable:")
	if ok1 && ok2 {
		parts = append(parts, fmt.Sprintf("memory %s of %s available", size(avail), size(total)))
	}
	if stalls := stalls(v.s.Pressure); stalls != "" {
		parts = append(parts, "pressure of the last 10 s: "+stalls)
	}
	return strings.Join(parts, ", ")
}

// meminfo finds one line of /proc/meminfo, in bytes.
func meminfo(text, key string) (bytes uint64, ok bool) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != key {
			continue
		}
		var kib uint64
		if _, err := fmt.Sscanf(f[1], "%d", &kib); err != nil || kib > 1<<53 {
			return 0, false
		}
		return kib << 10, true
	}
	return 0, false
}

// stalls says for what share of the last 10 s some tasks waited for a resource, and all
// of them at once, from lines such as "io full avg10=3.10 avg60=…"
// (Documentation/accounting/psi.rst).
func stalls(pressure string) string {
	var out []string
	for line := range strings.Lines(pressure) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		value, isShare := strings.CutPrefix(f[2], "avg10=")
		if !isShare || strings.Trim(value, "0.") == "" {
			continue
		}
		what, share := Clean(f[0]), Clean(value)+"%"
		if n := len(out); f[1] == "full" && n > 0 && strings.HasPrefix(out[n-1], what+" ") {
			out[n-1] += " (all at once " + share + ")"
			continue
		}
		out = append(out, what+" "+share)
	}
	return strings.Join(out, "; ")
}
