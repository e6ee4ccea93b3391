//go:build linux && (amd64 || arm64)

package testtask

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// An Actor is a thread as a fixture announced it: for a test outside the machine that
// reads what was left of it.
type Actor struct {
	Pid, Tid  int
	State     byte     // state letter of /proc
	Comm      string   // raw
	Functions []string // kernel functions of its stack, leaf first, some left out; none: nothing is claimed
}

// Check holds a state letter and a kernel stack, leaf first, against the actor.
// Compiler suffixes of a function (".constprop.0") are ignored.
func (a *Actor) Check(state byte, stack []string) error {
	w := ThreadWant{States: string(a.State)}
	for _, f := range a.Functions {
		w.Stack = append(w.Stack, []string{bareName(f)})
	}
	return w.Check(state, stack)
}

func bareName(function string) string {
	name, _, _ := strings.Cut(function, ".")
	return name
}

// Words that begin the lines of an announcement.
const (
	actorsWord = "ACTORS"
	readyWord  = "ACTORS READY"
)

// announced bounds a line: consoles are slow, and cut what is long.
const announced = 800

// Announce writes what every thread of the fixture is, as /proc has it now: a line for
// threads of a process that are alike,
//
//	ACTORS pid state "comm" function,function tid,tid-tid,...
//
// and at last ACTORS READY with the number of threads. Two thousand threads make some
// ten kilobytes. ReadActors reads it.
func (f *Fixture) Announce(w io.Writer) error {
	var out bytes.Buffer
	n := 0
	for i := range f.Children {
		c := &f.Children[i]
		tids, err := c.Verify()
		if err != nil {
			return fmt.Errorf("testtask: %v: %w", c, err)
		}
		alike := map[string][]int{}
		for _, tid := range tids {
			what, err := c.stands(tid)
			if err != nil {
				return fmt.Errorf("testtask: %v, thread %d: %w", c, tid, err)
			}
			alike[what] = append(alike[what], tid)
		}
		for what, tids := range alike {
			announce(&out, fmt.Sprintf("%s %d %s ", actorsWord, c.Pid, what), tids)
		}
		n += len(tids)
	}
	fmt.Fprintf(&out, "%s %d\n", readyWord, n)
	_, err := w.Write(out.Bytes())
	return err
}

// stands says what a thread is: state, name, and which functions it is known by.
func (c *Child) stands(tid int) (string, error) {
	dir := fmt.Sprintf("/proc/%d/task/%d", c.Pid, tid)
	st, err := readStat(dir)
	if err != nil {
		return "", err
	}
	stack, err := readStack(dir)
	if err != nil {
		return "", err
	}
	var known []string
	for _, group := range c.Want.Of(c.Pid, tid).Stack {
		i := slices.IndexFunc(stack, func(f string) bool { return slices.Contains(group, bareName(f)) })
		if i < 0 {
			return "", fmt.Errorf("kernel stack %v, want one of %v", stack, group)
		}
		known = append(known, stack[i])
		stack = stack[i+1:]
	}
	return fmt.Sprintf("%c %q %s", st.state, st.comm, strings.Join(append(known, "-")[:max(1, len(known))], ",")), nil
}

// announce writes tids, ascending, as ranges, in lines that begin with head.
func announce(out *bytes.Buffer, head string, tids []int) {
	line := ""
	for i := 0; i < len(tids); {
		j := i
		for j+1 < len(tids) && tids[j+1] == tids[j]+1 {
			j++
		}
		part := strconv.Itoa(tids[i])
		if j > i {
			part += "-" + strconv.Itoa(tids[j])
		}
		i = j + 1
		if line != "" && len(head)+len(line)+1+len(part) > announced {
			fmt.Fprintf(out, "%s%s\n", head, line)
			line = ""
		}
		if line != "" {
			line += ","
		}
		line += part
	}
	fmt.Fprintf(out, "%s%s\n", head, line)
}

// ReadActors reads an announcement out of the lines of a console or of a program's
// output, whatever else is between them. Lines that are damaged or missing are an error.
func ReadActors(lines []string) ([]Actor, error) {
	var all []Actor
	for i, line := range lines {
		if text, ok := strings.CutPrefix(line, readyWord+" "); ok {
			if n, err := strconv.Atoi(text); err != nil || n != len(all) {
				return nil, fmt.Errorf("testtask: line %d: %q after %d threads", i+1, line, len(all))
			}
			return all, nil
		}
		text, ok := strings.CutPrefix(line, actorsWord+" ")
		if !ok {
			continue
		}
		more, err := readActors(text)
		if err != nil {
			return nil, fmt.Errorf("testtask: line %d: %q: %w", i+1, line, err)
		}
		all = append(all, more...)
	}
	return nil, fmt.Errorf("testtask: %d threads announced and no line %q", len(all), readyWord)
}

// readActors reads a line behind its first word. A name may hold blanks, so it is
// unquoted before the rest is split.
func readActors(text string) ([]Actor, error) {
	var a Actor
	if _, err := fmt.Sscanf(text, "%d %c", &a.Pid, &a.State); err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(text, `"`)
	quoted, err := strconv.QuotedPrefix(`"` + rest)
	if err != nil {
		return nil, err
	}
	if a.Comm, err = strconv.Unquote(quoted); err != nil {
		return nil, err
	}
	f := strings.Fields((`"` + rest)[len(quoted):])
	if len(f) != 2 {
		return nil, fmt.Errorf("%d fields after the name, want 2", len(f))
	}
	if f[0] != "-" {
		a.Functions = strings.Split(f[0], ",")
	}
	var all []Actor
	for part := range strings.SplitSeq(f[1], ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if err != nil || last < first || last-first > 1<<16 {
			return nil, fmt.Errorf("threads %q", part)
		}
		for a.Tid = first; a.Tid <= last; a.Tid++ {
			all = append(all, a)
		}
	}
	return all, nil
}
