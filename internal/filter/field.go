package filter

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stackshot/internal/model"
	"stackshot/internal/waits"
)

// The fields, by their names in the language.
const (
	State   = "state"
	Name    = "name" // of the thread, the task or its program
	Pid     = "pid"
	Tid     = "tid"
	UID     = "uid"
	Func    = "func"   // any function of its stacks
	Module  = "module" // of such a function
	Wait    = "wait"   // what it waits for
	Cgroup  = "cgroup"
	Age     = "age"     // of its state
	Threads = "threads" // of its task
	CPU     = "cpu"     // on which it ran last
)

// kind is what the values of a field are. Its ops are the operators that it takes.
type kind struct {
	ops   []Op
	check func(Value) error // refuses a value that the field cannot have; nil: it can have any
}

var (
	text     = &kind{ops: []Op{Is, IsNot, Part, Prefix}}
	number   = &kind{ops: []Op{Is, IsNot, Less, AtMost, More, AtLeast}, check: checked(numberOf)}
	duration = &kind{ops: []Op{Less, AtMost, More, AtLeast}, check: checked(durationOf)}
	state    = &kind{ops: []Op{Is, IsNot}, check: checkState}
	wait     = &kind{ops: text.ops}
)

func checked(read func(Value) (uint64, error)) func(Value) error {
	return func(v Value) error {
		_, err := read(v)
		return err
	}
}

// fields in the order in which messages list them. says is for people.
var fields = []struct {
	name string
	kind *kind
	says string
}{
	{State, state, "a letter of /proc/PID/stat or a word (below)"},
	{Name, text, "of the thread, its task or its program file"},
	{Pid, number, "number of the process (thread group)"},
	{Tid, number, "number of the thread"},
	{UID, number, "real user id of the task"},
	{Func, text, "any function on its kernel or user stack"},
	{Module, text, "kernel module, program or library of any func"},
	{Wait, wait, "a kind (below), lock or mount it waits for"},
	{Cgroup, text, "path of its control group"},
	{Age, duration, "how long it has been in its state"},
	{Threads, number, "of its task: how many"},
	{CPU, number, "on which it runs, or ran last"},
}

// Fields are the names of all fields.
func Fields() (names []string) {
	for _, f := range fields {
		names = append(names, f.name)
	}
	return names
}

// kindOf is nil for what is no field.
func kindOf(name string) *kind {
	for _, f := range fields {
		if f.name == name {
			return f.kind
		}
	}
	return nil
}

// held are the states of threads that somebody holds, beside their letters.
const (
	traced = "traced"
	frozen = "frozen"
)

// States are the values of the field state: the letters of /proc/PID/stat, then words.
func States() []string {
	out := []string{"D", "R", "S", "T", "t", "I", "P", "Z", "X"}
	for c := range model.ClassCount {
		out = append(out, c.String())
	}
	return append(out, traced, frozen)
}

func checkState(v Value) error {
	if word, ok := v.literal(); !ok || !slices.Contains(States(), word) {
		return fmt.Errorf("unknown state %s: want %s", v.quoted(), strings.Join(States(), ", "))
	}
	return nil
}

// checkWait refuses what looks like a kind of wait and is none: it would match nothing. What
// has another character may be a mount point, an address or the words for a lock.
func checkWait(op Op, v Value) error {
	word, ok := v.literal()
	if !ok || op != Is && op != IsNot || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_") != "" || waits.Kind(word).Known() {
		return nil
	}
	return fmt.Errorf("unknown kind of wait %s: want %s (%s~ looks for a part of the words)", v.quoted(), strings.Join(Waits(), ", "), Wait)
}

// Waits are the kinds of wait, which the field wait has.
func Waits() (names []string) {
	for _, k := range waits.Kinds() {
		names = append(names, string(k))
	}
	return names
}

func numberOf(v Value) (uint64, error) {
	if word, ok := v.literal(); ok {
		if n, err := strconv.ParseUint(word, 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%s is no number", v.quoted())
}
