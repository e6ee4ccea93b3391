//go:build linux && (amd64 || arm64)

package hanglab

import (
	"slices"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

var (
	userMutex = []waits.Kind{waits.UserMutex}
	// A PI mutex is a lock of user memory and an rt_mutex of the kernel: both are true.
	piMutex = []waits.Kind{waits.UserPIMutex, waits.RTMutex}
)

// Cases are all of the laboratory.
func Cases() []*Case {
	return slices.Concat(userCases(), ownerless(), kernelCases(), endCases())
}

// userCases wait for locks of user memory whose owner is known.
func userCases() []*Case {
	all := []*Case{
		abba("abba-glibc", hang(userlab.Glibc, "abba")),
		abba("abba-stripped", hang(userlab.Stripped, "abba")),
		abba("abba-recursive", hang(userlab.Glibc, "abba-recursive")),
		abba("abba-errorcheck", hang(userlab.Glibc, "abba-errorcheck")),
		abba("abba-robust", hang(userlab.Glibc, "abba-robust")),
		abba("abba-musl-recursive", hang(userlab.Musl, "abba-recursive")),
		abba("abba-nested", nested("abba", 3)),
		piChain("pi-chain", hang(userlab.Glibc, "pi-chain")),
		piChain("pi-chain-nested", nested("pi-chain", 4)),
		{Name: "cycle-of-three", start: hang(userlab.Glibc, "cycle"), Cycle: []string{"p1", "p2", "q"},
			Waits: []Wait{{"p1", userMutex, "p2"}, {"p2", userMutex, "q"}, {"q", userMutex, "p1"}}},
		{Name: "rwlock-writer", start: hang(userlab.Glibc, "rw-writer"),
			Waits:    []Wait{{"writer", []waits.Kind{waits.UserRWLock}, "holder"}},
			Culprits: []Culprit{culprit("holder", waitgraph.Asleep, "writer")}},
		{Name: "zombie-owner", start: hang(userlab.Glibc, "zombie-owner"),
			Waits:    []Wait{{"waiter", userMutex, "owner"}},
			Culprits: []Culprit{culprit("owner", waitgraph.Dead, "waiter")}},
		// Many a healthy program joins threads that wait for work.
		{Name: "join", start: hang(userlab.Glibc, "join"), May: []string{"hangs"},
			Waits: []Wait{{"joins", []waits.Kind{waits.UserJoin}, "hangs"}}},
		crowd(),
		held("holder-asleep", waitgraph.Asleep, hang(userlab.Glibc, "holder")),
		traced(),
		held("holder-stopped", waitgraph.Stopped, func(tb testing.TB, l *Lab) Cast {
			h := l.hangs.Start(tb, userlab.Glibc, "holder")
			h.StopPart("holder")
			return h.Parts
		}),
		held("holder-frozen", waitgraph.Frozen, func(tb testing.TB, l *Lab) Cast {
			h := l.hangs.Start(tb, userlab.Glibc, "holder")
			h.Freeze("holder")
			return h.Parts
		}),
	}
	return all
}

func abba(name string, start func(testing.TB, *Lab) Cast) *Case {
	c := &Case{Name: name, start: start, Cycle: []string{"a", "b"}, Behind: []string{"behind"},
		Waits: []Wait{{"a", userMutex, "b"}, {"b", userMutex, "a"}, {"behind", userMutex, "a"}}}
	if name == "abba-musl-recursive" {
		c.lacks = noMusl
	}
	return c
}

func piChain(name string, start func(testing.TB, *Lab) Cast) *Case {
	return &Case{Name: name, start: start, Culprits: []Culprit{culprit("t4", waitgraph.Asleep, "t1", "t2", "t3")},
		Waits: []Wait{{"t1", piMutex, "t2"}, {"t2", piMutex, "t3"}, {"t3", piMutex, "t4"}}}
}

func held(name string, why waitgraph.Reason, start func(testing.TB, *Lab) Cast) *Case {
	return &Case{Name: name, start: start, Waits: []Wait{{"waiter", userMutex, "holder"}},
		Culprits: []Culprit{culprit("holder", why, "waiter")}}
}

func traced() *Case {
	c := held("holder-traced", waitgraph.Traced, hang(userlab.Glibc, "traced"))
	c.Waits = append(c.Waits, Wait{"holder", []waits.Kind{waits.Traced}, "tracer"})
	return c
}

func crowd() *Case {
	c := &Case{Name: "crowd", start: hang(userlab.Glibc, "crowd"), Culprits: []Culprit{culprit("holder", waitgraph.Asleep)}}
	for _, role := range []string{"w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9", "w10", "w11"} {
		c.Waits = append(c.Waits, Wait{role, userMutex, "holder"})
		c.Culprits[0].Victims = append(c.Culprits[0].Victims, role)
	}
	return c
}

// ownerless wait for what keeps no owner: it is named, and nobody is accused.
func ownerless() []*Case {
	waiter := func(name, role string, start func(testing.TB, *Lab) Cast, kinds ...waits.Kind) *Case {
		return &Case{Name: name, start: start, Waits: []Wait{{Role: role, Kinds: kinds}}}
	}
	// The kernel wakes one waiter of a robust mutex whose owner dies, and that one takes
	// it. So a waiter of a dead owner sleeps only where the one that was woken did not.
	robust := waiter("robust-owner-died", "waiter", hang(userlab.Glibc, "robust-died"), waits.UserMutex)
	gone := waiter("gone-owner", "waiter", hang(userlab.Glibc, "gone-owner"), waits.UserMutex)
	robust.Gone, gone.Gone = true, true
	musl := waiter("abba-musl", "a", hang(userlab.Musl, "abba"), waits.UserMutex)
	musl.Waits = append(musl.Waits, Wait{Role: "b", Kinds: userMutex}, Wait{Role: "behind", Kinds: userMutex})
	musl.lacks = noMusl
	rust := waiter("abba-rust", "a", func(tb testing.TB, l *Lab) Cast { return l.hangs.StartRust(tb).Parts }, waits.RustLock)
	rust.Waits = append(rust.Waits, Wait{Role: "b", Kinds: []waits.Kind{waits.RustLock}})
	golang := waiter("abba-go", "a", func(tb testing.TB, l *Lab) Cast { return l.hangs.StartGo(tb).Parts }, waits.GoRuntime)
	golang.Waits = append(golang.Waits, Wait{Role: "b", Kinds: []waits.Kind{waits.GoRuntime}}, Wait{Role: "receiver", Kinds: []waits.Kind{waits.GoRuntime}})
	rust.lacks, golang.lacks = noCompiler, noCompiler
	return []*Case{robust, gone, musl, rust, golang,
		waiter("condvar", "waiter", hang(userlab.Glibc, "condvar"), userStackOf(waits.UserCondvar)...),
		waiter("rwlock-readers", "writer", hang(userlab.Glibc, "rw-reader"), waits.UserRWLock)}
}

// userStackOf is a kind that only the names on a user stack tell. The seconds that a
// capture has for these may be too few for an emulated machine of 600 tasks.
func userStackOf(k waits.Kind) []waits.Kind {
	if testneed.Guest() {
		return []waits.Kind{k, waits.Futex}
	}
	return []waits.Kind{k}
}

func culprit(role string, why waitgraph.Reason, victims ...string) Culprit {
	return Culprit{role, []waitgraph.Reason{why}, victims}
}

func hang(libc userlab.Libc, name string) func(testing.TB, *Lab) Cast {
	return func(tb testing.TB, l *Lab) Cast { return l.hangs.Start(tb, libc, name).Parts }
}

// nested cases are of threads whose own numbers are those of others on this machine.
func nested(name string, threads int) func(testing.TB, *Lab) Cast {
	return func(tb testing.TB, l *Lab) Cast {
		return l.hangs.StartNested(tb, name, userlab.Namesakes(tb, threads)).Parts
	}
}

func noMusl() string {
	if userlab.Guest() && !userlab.HasLibc(userlab.Musl) {
		return "musl-gcc builds for this project's host alone, and this guest is of another architecture"
	}
	return ""
}

func noCompiler() string {
	if userlab.Guest() {
		return "a guest has no compiler of this language"
	}
	return ""
}
