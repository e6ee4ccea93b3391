package screen

import (
	"cmp"
	"fmt"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// machine is the first line: machine, time, processes and threads, then what a narrow terminal may
// cut.
func (v *view) machine() string {
	var out show.Parts
	delta := ""
	if v.s.Delta {
		delta = "delta of "
	}
	out.Add("%s%s", delta, cmp.Or(short(v.s.Hostname), "unknown host"))
	out.If(v.s.Machine.RealtimeNs > 0, "%s", show.Moment(v.s.Machine.RealtimeNs))
	processes, threads, kernel := 0, 0, 0
	for _, t := range v.s.Tasks {
		switch {
		case t.ID == 0: // the CPUs' idle threads
		case t.IsKernel():
			kernel += len(t.Threads)
		default:
			processes++
			threads += len(t.Threads)
		}
	}
	s := strings.Join(out, ", ")
	s += fmt.Sprintf(": %s, %s", count(processes, "process", "processes"), count(threads, "thread", "threads"))
	var rest show.Parts
	rest.If(kernel > 0, "%s", show.Count(kernel, "kernel thread"))
	rest.If(v.s.Release != "", "Linux %s", short(v.s.Release))
	if f := strings.Fields(v.s.Loadavg); len(f) >= 3 {
		rest.Add("load %s", short(strings.Join(f[:3], " ")))
	}
	rest.If(v.s.HasMachine && v.s.Machine.BoottimeNs > 0, "up %s", show.Duration(v.s.Machine.BoottimeNs))
	for _, r := range rest {
		if w := v.o.Width; w > 0 && show.Cells(s)+2+show.Cells(r) > w {
			break
		}
		s += ", " + r
	}
	return s
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return show.Thousands(uint64(n)) + " " + many
}

// picture is the last line: how exact the picture is, and who is not in it.
func (v *view) picture() string {
	var out show.Parts
	stopped := len(account.CPUsWith(v.s, kcdata.CPUStopped))
	out.If(stopped > 0, "%d of %s stopped %s", stopped, show.Count(len(v.s.CPUs), "CPU"), show.Duration(v.s.Capture.StoppedNs))
	ran := uint32(0)
	if a := v.s.Atomicity; a != nil {
		ran = a.Ran
		out.Add("%s ran", count(int(a.Ran), "thread", "threads"))
		out.If(a.Gone+a.Missed > 0, "%d not compared", a.Gone+a.Missed)
	}
	out.If(v.unasked > 0, "%s not asked for", count(v.unasked, "thread", "threads"))
	out.If(len(v.o.NotSymbolized) > 0, "%s without names", count(len(v.o.NotSymbolized), "file", "files"))
	what := "picture exact"
	stoppedNothing := v.s.Isolation == "none" || v.s.Engine == "procfs"
	switch {
	case v.s.Panic != nil && v.s.Panic.Cause == kcdata.PanicBySysrq:
		what = "picture not exact: nothing was stopped, " + account.PanicTitle(v.s)
	case v.s.Isolation+v.s.Engine == "" && stopped == 0:
		what = "this file does not say whether anything was stopped"
	case v.s.Partial && !v.s.HasCapture && !stoppedNothing:
		what = "not known how exact the picture is: this file was not read whole"
	case stoppedNothing || stopped == 0:
		what = "picture not exact: nothing was stopped"
	case stopped < len(v.s.CPUs) || ran > 0 || v.s.Capture.StopBroken > 0:
		what = "picture not exact"
	}
	if len(out) == 0 {
		return what
	}
	if strings.HasSuffix(what, "exact") {
		return what + ": " + out.Join(", ")
	}
	return what + ", " + out.Join(", ")
}
