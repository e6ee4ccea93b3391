package filter

import (
	"cmp"
	"path"
	"strings"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// numbers read the fields that are numbers; ok is false if the file does not have it.
var numbers = map[string]func(*subject) (n uint64, ok bool){
	Pid: func(x *subject) (uint64, bool) { return x.task.ID, true },
	Tid: func(x *subject) (uint64, bool) { return x.thread.ID, !x.thread.IsIdle() },
	UID: func(x *subject) (uint64, bool) {
		return uint64(x.task.Linux.UID), has(x.task.Linux.Present, kcdata.TaskHasIDs)
	},
	CPU:     func(x *subject) (uint64, bool) { return uint64(x.thread.Linux.CPU), x.thread.HasLinux },
	Threads: func(x *subject) (uint64, bool) { return threadsOf(x.task), true },
	Age: func(x *subject) (uint64, bool) {
		age := x.clock.Age(x.thread, model.StateOf(x.thread).Since)
		return age.Ns, age.Known
	},
}

func has(bits, bit uint64) bool { return bits&bit != 0 }

// threadsOf is how many threads a task has, of which the file may lack some.
func threadsOf(t *kcdata.Task) uint64 {
	n := uint64(len(t.Threads))
	if has(t.Linux.Present, kcdata.TaskHasThreadCount) {
		n = max(n, uint64(t.Linux.NrThreads))
	}
	return n
}

// stateTest is for one word of States.
func stateTest(word string) test {
	return func(x *subject) bool {
		st := model.StateOf(x.thread)
		switch word {
		case st.Letter(), st.Class.String():
			return true
		case traced:
			return st.Letter() == "t"
		case frozen:
			return st.Class == model.Held && st.Letter() == ""
		}
		return false
	}
}

// match reports whether a text of the machine meets a comparison.
type match func(text string) bool

// matcher compares texts as they are shown (F4), each once: most are those of many threads.
func matcher(op Op, v Value) match {
	clean := make(Value, len(v))
	for i, piece := range v {
		clean[i] = show.Clean(piece)
	}
	known := map[string]bool{}
	return func(text string) bool {
		yes, ok := known[text]
		if !ok {
			yes = text != "" && clean.matches(op, show.Clean(text))
			known[text] = yes
		}
		return yes
	}
}

// texts make the tests of the fields that are texts: some text of the field has to match.
var texts = map[string]func(match) test{
	Name:   nameTest,
	Cgroup: cgroupTest,
	Func:   funcTest,
	Module: moduleTest,
	Wait:   waitTest,
}

func nameTest(m match) test {
	return func(x *subject) bool { return m(x.thread.Name) || m(x.task.Name) || m(program(x.task)) }
}

// program is the file name of what a task executes: it is longer than the 15 characters that
// the kernel keeps as the task's name.
func program(t *kcdata.Task) string {
	if t.ExePath != "" {
		return path.Base(strings.TrimSuffix(t.ExePath, " (deleted)"))
	}
	if t.Exe != nil {
		return t.Exe.FileName()
	}
	return ""
}

// cgroupTest takes a path with and without the slash that it begins with.
func cgroupTest(m match) test {
	return func(x *subject) bool {
		return m(x.task.Cgroup) || m(cmp.Or(strings.TrimPrefix(x.task.Cgroup, "/"), x.task.Cgroup))
	}
}
