package report

import (
	"strconv"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/screen"
	"stackshot/internal/show"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// first writes the first screen, of any height (package screen).
func (v *view) first(l *lines) error {
	o := screen.Options{
		Verdict: v.o.Verdict, Width: v.o.Width, Color: v.o.Color, File: v.o.File, Program: v.o.Program, Absent: v.o.Absent, Only: v.o.Only, NotSymbolized: v.o.NotSymbolized,
	}
	if o.Verdict == nil {
		o.Verdict = &waitgraph.Verdict{Waits: &waits.Waits{Unrecorded: true, OneInstant: true}}
	}
	return screen.Text(l.w, v.s, o)
}

// taken says how the picture was taken, and how many threads it has.
func (v *view) taken(l *lines) {
	l.Line("")
	l.colored(show.Bold, func() { l.Line("== THE PICTURE") })
	l.Words("", "%s", account.BriefMachine(v.s))
	var said show.Parts
	said.Add("%s", account.BriefPause(v.s))
	said.Add("%s", account.BriefAtomicity(v.s))
	said.Add("%s", account.BriefFiles(v.s))
	said.If(v.allChains, "user stacks %s", chainText)
	said.Add("%s", v.machineLoad())
	said.If(v.s.Request != "", "asked for: %s", show.Clean(v.s.Request))
	said.Add("%s", refusals(v.s))
	said.Add("%s", v.census())
	for _, s := range said {
		l.Words("", "%s", s)
	}
}

// machineLoad is the line about load and memory.
func (v *view) machineLoad() string {
	var parts show.Parts
	if f := strings.Fields(v.s.Loadavg); len(f) >= 3 {
		parts.Add("load %s", show.Clean(strings.Join(f[:3], " ")))
	}
	total, ok1 := meminfo(v.s.Meminfo, "MemTotal:")
	avail, ok2 := meminfo(v.s.Meminfo, "MemAvailable:")
	parts.If(ok1 && ok2, "memory %s of %s available", show.Size(avail), show.Size(total))
	stalls := stalls(v.s.Pressure)
	parts.If(stalls != "", "pressure of the last 10 s: %s", stalls)
	return parts.Join(", ")
}

// meminfo returns the value of one line of /proc/meminfo, in bytes.
func meminfo(text, key string) (bytes uint64, ok bool) {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, key); found {
			kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 53)
			return kib << 10, err == nil
		}
	}
	return 0, false
}

// stalls returns the pressure stall information: for each resource the share of the last
// 10 s in which some tasks waited for it, and in which all did. Its lines are such as
// "io full avg10=3.10 avg60=…" (Documentation/accounting/psi.rst).
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
		what, share := show.Clean(f[0]), show.Clean(value)+"%"
		if n := len(out); f[1] == "full" && n > 0 && strings.HasPrefix(out[n-1], what+" ") {
			out[n-1] += " (all at once " + share + ")"
			continue
		}
		out = append(out, what+" "+share)
	}
	return strings.Join(out, "; ")
}
