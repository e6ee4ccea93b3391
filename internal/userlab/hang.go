//go:build linux

package userlab

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testtask"
)

// A Part is a thread of a hang that plays a role in it. Numbers are of the test's pid
// namespace.
type Part struct {
	Pid, Tid int
	Inner    int // tid in the thread's own pid namespace
}

// A Hang is one process, with those that it has forked, that hangs in a known way.
type Hang struct {
	*Process
	Case  string
	Parts map[string]Part // by role
	Dir   string          // of its files, if it is one of ends.c
}

// Start starts a case of hang.c, and returns when /proc shows every part where it is
// to hang. It ends with the test tb, which may be a part of the one that built.
func (hs *Hangs) Start(tb testing.TB, libc Libc, name string) *Hang {
	tb.Helper()
	return startHang(tb, name, launch{name: "hang " + name, argv: []string{hs.program(tb, libc), name}})
}

// StartNested is Start in the inner one of two new pid namespaces, whose threads
// get the numbers inner there.
func (hs *Hangs) StartNested(tb testing.TB, name string, inner []int) *Hang {
	tb.Helper()
	numbers := strings.ReplaceAll(strings.Trim(fmt.Sprint(inner), "[]"), " ", ",")
	return startHang(tb, name, launch{name: "hang nested " + name, members: 3,
		argv: []string{hs.program(tb, Glibc), "nested", numbers, name}})
}

// StartReader is a process in read(2) of a file, where functions are on its kernel stack.
func (hs *Hangs) StartReader(tb testing.TB, path string, functions ...string) *Hang {
	tb.Helper()
	p := run(tb, launch{name: "reader of " + path, argv: []string{hs.program(tb, Glibc), "read", path}, any: true})
	awaitKernel(p, 'D', functions...)
	h := &Hang{Process: p, Case: "read"}
	if err := h.cast(); err != nil {
		tb.Fatalf("userlab: %s: %v", p.Name, err)
	}
	return h
}

func startHang(tb testing.TB, name string, l launch) *Hang {
	tb.Helper()
	l.any = true
	h := &Hang{Process: run(tb, l), Case: name}
	if err := h.cast(); err != nil {
		tb.Fatalf("userlab: %s: %v", l.name, err)
	}
	h.Await(hangsIn(name))
	if name == "healthy" {
		h.nice0()
	}
	return h
}

// nice0 undoes what run does to every program: behind all others of a busy machine, a
// thread that holds a lock would keep it for seconds, and that is not healthy.
func (h *Hang) nice0() {
	h.tb.Helper()
	tids, err := h.tids()
	if err != nil {
		h.tb.Fatalf("userlab: %s: %v", h.Name, err)
	}
	for _, p := range tids {
		if err := unix.Setpriority(unix.PRIO_PROCESS, p.Tid, 0); err != nil {
			h.tb.Fatalf("userlab: %s: nice 0: %v", h.Name, err)
		}
	}
}

// cast reads the ready line: role=tid, in the pid namespace of who said it.
func (h *Hang) cast() error {
	tids, err := h.tids()
	if err != nil {
		return err
	}
	h.Parts = map[string]Part{}
	for _, word := range h.Says {
		role, number, _ := strings.Cut(word, "=")
		inner, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("role %q: %w", word, err)
		}
		i := slices.IndexFunc(tids, func(p Part) bool { return p.Inner == inner })
		if i < 0 {
			return fmt.Errorf("role %q: no thread has this number: %v", word, tids)
		}
		h.Parts[role] = tids[i]
	}
	return nil
}

// tids are all threads of all members, with their innermost numbers.
func (h *Hang) tids() ([]Part, error) {
	var all []Part
	for _, pid := range h.Members {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if errors.Is(err, os.ErrNotExist) && pid != h.Pid {
			continue // ended meanwhile
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", pid, e.Name()))
			if err != nil {
				return nil, err
			}
			_, rest, _ := strings.Cut(string(b), "\nNSpid:")
			line, _, _ := strings.Cut(rest, "\n")
			numbers := strings.Fields(line)
			if len(numbers) == 0 {
				return nil, fmt.Errorf("no NSpid of thread %s", e.Name())
			}
			tid, _ := strconv.Atoi(e.Name())
			inner, err := strconv.Atoi(numbers[len(numbers)-1])
			if err != nil {
				return nil, err
			}
			all = append(all, Part{Pid: pid, Tid: tid, Inner: inner})
		}
	}
	// The namespaces' first processes have small numbers, too, and no role.
	slices.SortFunc(all, func(a, b Part) int { return b.Pid - a.Pid })
	return all, nil
}

// Await waits until /proc shows each part as want says. A role that want lacks is held
// against want[""].
func (h *Hang) Await(want map[string]testtask.ThreadWant) {
	h.tb.Helper()
	for role, part := range h.Parts {
		w, ok := want[role]
		if !ok {
			w = want[""]
		}
		var last error
		err := testtask.WaitFor(readyTime, func() (bool, error) {
			last = part.check(w)
			return last == nil, nil
		})
		if err != nil {
			h.tb.Fatalf("userlab: %s: %s (thread %d) does not hang: %v\n%s", h.Name, role, part.Tid, last, h.Log())
		}
	}
}

func (p Part) check(w testtask.ThreadWant) error {
	state, err := stateOf(fmt.Sprintf("/proc/%d/task/%d", p.Pid, p.Tid))
	if err != nil {
		return err
	}
	stack, err := kernelStack(p.Pid, p.Tid)
	if err != nil {
		return err
	}
	return w.Check(state, stack)
}

// StopPart stops the process of a role, which stays so until the end.
func (h *Hang) StopPart(role string) {
	h.tb.Helper()
	if err := unix.Kill(h.Parts[role].Pid, unix.SIGSTOP); err != nil {
		h.tb.Fatalf("userlab: stop of %s: %v", role, err)
	}
	h.Await(h.with(role, testtask.ThreadWant{States: "T", Stack: [][]string{{"do_signal_stop"}}}))
}

// with is what the case wants, but for one role.
func (h *Hang) with(role string, w testtask.ThreadWant) map[string]testtask.ThreadWant {
	m := hangsIn(h.Case)
	m[role] = w
	return m
}
