// Package alarm says what limits trust in a snapshot, in the words that all commands share. It is
// a pure function of a decoded file.
package alarm

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// limit bounds each kind of alarm.
const limit = 4

// All are the sentences on what limits trust in a snapshot, worst first; one names the numbers
// that were asked for and are absent from it.
func All(s *kcdata.Snapshot, absent []uint64) []string {
	return (&view{s: s, absent: absent}).alarms()
}

type view struct {
	s      *kcdata.Snapshot
	absent []uint64 // numbers of tasks and threads that were asked for and are not in the file
}

// alarms returns the sentences on what limits trust in the picture, worst first.
func (v *view) alarms() []string {
	out := v.panicked()
	out = append(out, v.missedCPUs()...)
	left, broken := account.CPUsWith(v.s, kcdata.CPULeft), account.Broken(v.s.Capture.StopBroken)
	out.If(len(left) > 0, "%s left running on purpose (isolated or nohz_full): what ran there moved on while the picture was taken", account.CPUList(left))
	out.If(broken != "", "%s: stacks may be of different moments", broken)
	out.If(v.stoppedNothing(), "%s", v.nothingStopped())
	out.If(v.s.HasMachine && v.s.Machine.PidNSIsFirst == 0, "this namespace only: tasks outside pid namespace %d are not in this file", v.s.Machine.PidNS)
	out.If(len(v.absent) > 0, "asked for, but not in the file: pid %s", show.Ranges(v.absent, 12))
	out = append(out, account.LeftOut(v.s)...)
	out.Add("%s", v.missedTables())
	var warnings, problems []string
	for _, w := range v.unsaid() {
		warnings = append(warnings, w.String())
	}
	for _, p := range v.s.Problems {
		problems = append(problems, "the file: "+show.Clean(p))
	}
	out = append(out, show.AtMost(2*limit, warnings, func(n int) string { return "and " + show.Count(n, "more warning") })...)
	return append(out, show.AtMost(limit, problems, func(n int) string { return "and " + show.Count(n, "more problem") + " with the file" })...)
}

// frame writes one kernel address as "name+0x1f [module]", or as a number if it has no name.
func (v *view) frame(addr uint64) string {
	sym, ok := v.s.Symbols.Name(addr)
	if !ok {
		return fmt.Sprintf("0x%016x", addr)
	}
	s := show.Clean(sym.Name) + fmt.Sprintf("+%#x", sym.Offset)
	if sym.Module != "" {
		s += " [" + show.Clean(sym.Module) + "]"
	}
	return s
}

func andMore(n int) string { return fmt.Sprintf("and %d more", n) }

// Codes of warnings (package snapshot) of which an alarm gives the content in more detail.
const (
	warnMissed   = "cpu_missed"
	warnProcfs   = "engine_procfs"
	warnPressure = "memory_pressure"
)

// unsaid returns the warnings of which no alarm gives the content.
func (v *view) unsaid() []account.Warning {
	said := map[string]bool{warnMissed: len(account.CPUsWith(v.s, kcdata.CPUMissed)) > 0}
	if v.stoppedNothing() {
		said[warnProcfs], said[warnPressure] = true, true
	}
	if v.notRoot() != "" {
		for _, code := range ofNotRoot {
			said[code] = true
		}
	}
	return slices.DeleteFunc(account.Warnings(v.s.Warnings), func(w account.Warning) bool { return said[w.Code] })
}

func (v *view) stoppedNothing() bool { return v.s.Isolation == "none" || v.s.Engine == "procfs" }

// ofNotRoot are the codes of warnings that an ordinary user has because of one thing, which
// the line for an ordinary user names. The file, its JSON and doctor have them all.
var ofNotRoot = []string{kcdata.WarningNotRoot, "ordinary_priority", "no_samples", "no_symbols", "no_lock", kcdata.WarningUserStacks}

// notRoot is the line for an ordinary user; "": the file is of none, or something was stopped.
func (v *view) notRoot() string {
	i := slices.IndexFunc(v.s.Warnings, func(w kcdata.Warning) bool { return w.Code == kcdata.WarningNotRoot })
	if i < 0 || !v.stoppedNothing() {
		return ""
	}
	return "not root: " + show.Clean(v.s.Warnings[i].Text)
}

// panicked says first what the machine died of, then what the records of that lack.
func (v *view) panicked() (out show.Parts) {
	if p := v.s.Panic; p != nil && p.Cause != kcdata.PanicBySysrq {
		out.Add("%s", account.PanicTitle(v.s))
	}
	return append(out, account.PanicLimits(v.s)...)
}

// nothingStopped says what it means that nothing was stopped and, if the capture gave a
// reason, why.
func (v *view) nothingStopped() string {
	if v.s.Panic != nil {
		return account.PanicStill(v.s)
	}
	if line := v.notRoot(); line != "" {
		return line
	}
	text := "nothing was stopped: the threads were read one after the other, each at its own moment"
	for _, w := range v.s.Warnings {
		if w.Code == warnProcfs || w.Code == warnPressure {
			text += "; because " + show.Clean(strings.TrimPrefix(w.Text, "nothing was stopped: ")) + " (" + w.Code + ")"
		}
	}
	return text
}

// missedCPUs names each CPU that did not stop in time, and the thread that is the first suspect.
func (v *view) missedCPUs() (out show.Parts) {
	missed := account.CPUsWith(v.s, kcdata.CPUMissed)
	for i := range v.s.CPUs {
		if c := &v.s.CPUs[i]; c.Flags&kcdata.CPUMissed != 0 && len(out) < limit {
			out.Add("CPU %d did not stop in time. %s", c.CPU, v.why(c))
		}
	}
	out.If(len(missed) > limit, "%s in all did not stop in time: %s", show.Count(len(missed), "CPU"), show.Ranges(missed, 16))
	return out
}

// why names the thread that kept a CPU from the stop, or whoever may have.
func (v *view) why(c *kcdata.LinuxCPU) string {
	m := model.Missed(v.s, c)
	ran := v.ranOn(c, &m)
	if len(m.Above) == 0 {
		return "It ran " + ran
	}
	var above []string
	for i := range min(len(m.Above), limit) {
		above = append(above, named(m.Above[i]))
	}
	if n := len(m.Above) - limit; n > 0 {
		above = append(above, andMore(n))
	}
	first := strings.Join(above, ", ")
	switch {
	case m.Suspect != nil && c.Flags&kcdata.CPURanKnown == 0:
		return first + " is first in line there: suspect it first"
	case m.Suspect != nil:
		return fmt.Sprintf("%s is first in line there: suspect it first. A sample found %s", first, ran)
	}
	return fmt.Sprintf("It ran %s, and first in line is %s: nobody can say whom to suspect", ran, first)
}

// ranOn names what a sample found on a missed CPU.
func (v *view) ranOn(c *kcdata.LinuxCPU, m *model.MissedCPU) string {
	suspect := ": suspect it first"
	if len(m.Above) > 0 {
		suspect = ""
	}
	switch {
	case c.Flags&kcdata.CPURanKnown == 0:
		return "an unknown thread" + suspect
	case c.Flags&kcdata.CPUIdle != 0 && c.RanTid == 0:
		return "its idle thread"
	case m.Ran.Thread == nil:
		return fmt.Sprintf("tid %d of task %d, which is not in the file%s", c.RanTid, c.RanTgid, suspect)
	}
	return named(m.Ran) + v.where(m.Ran.Thread) + suspect
}

// named is a thread with its real-time priority: "hog [7] tid 7 (FIFO 99)".
func named(t model.OfTask) string {
	name := fmt.Sprintf("%s tid %d", account.Task(t.Task), t.ID)
	if p := model.RealTime(t.Thread); p != "" {
		name += " (" + p + ")"
	}
	return name
}

// where says in which function a sample found a thread; "" without a sample.
func (v *view) where(t *kcdata.Thread) string {
	switch {
	case t.Sample == nil:
		return ""
	case t.Sample.User != 0 && t.Sample.IP != 0:
		return fmt.Sprintf(", in user mode at %#x", t.Sample.IP)
	case t.Sample.User != 0:
		return ", in user mode"
	case len(t.Kernel) > 0:
		return ", in the kernel at " + v.frame(t.Kernel[0])
	}
	return ", in the kernel"
}

// missedTables says of which files the unwind tables were wanted and not read, how many
// user stacks lack them, and what helps; "" if none was missed.
func (v *view) missedTables() string {
	type file struct {
		path         string
		major, minor uint32
		inode        uint64
	}
	files := map[file]bool{}
	stacks, kept := 0, 0
	for _, t := range v.s.Tasks {
		for i := range t.Mappings {
			if m := &t.Mappings[i]; m.Flags&kcdata.MappingTableMissed != 0 {
				files[file{m.Path, m.DevMajor, m.DevMinor, m.Inode}] = true
			}
		}
		for _, th := range t.Threads {
			if th.UserWalk != nil && th.UserWalk.Flags&kcdata.UserTablesMissed != 0 {
				stacks++
				kept += min(1, len(th.UserBytes)+len(th.UserChain))
			}
		}
	}
	if len(files)+stacks == 0 {
		return ""
	}
	var names []string
	for f := range files {
		names = append(names, show.Clean(path.Base(f.path)))
	}
	slices.Sort(names)
	text := fmt.Sprintf("unwind tables of %s were not read", show.Count(len(files), "file"))
	if len(names) > 0 {
		text += " (" + strings.Join(show.AtMost(limit, names, andMore), ", ") + ")"
	}
	text += fmt.Sprintf(": callers may be missing in %s", show.Count(stacks, "user stack"))
	if kept > 0 {
		text += "; `stackshot symbolize --unwind FILE` unwinds them again from the stack bytes, which stay in the file for that and may hold secrets"
	}
	return text
}
