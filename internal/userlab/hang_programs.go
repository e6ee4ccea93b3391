//go:build linux

package userlab

import (
	"testing"

	"stackshot/internal/testneed"
)

// Libc is a C library, and how a program that hangs is built with it.
type Libc string

const (
	Glibc    Libc = "glibc"
	Stripped Libc = "glibc, stripped"
	Musl     Libc = "musl" // not in guests of arm64: there is no such compiler
)

var hangPrograms = map[Libc]struct {
	tool string
	cProgram
}{
	Glibc:    {"gcc", cProgram{"hang.c", "-O2 -g -pthread -Wno-unused-result"}},
	Stripped: {"gcc", cProgram{"hang.c", "-O2 -s -pthread -Wno-unused-result"}},
	Musl:     {"musl-gcc", cProgram{"hang.c", "-O2 -g -pthread -static -Wno-unused-result"}},
}

// Hangs starts processes that hang. It builds each program once; they go with the test
// that has made it.
type Hangs struct {
	b     *builder
	built map[string]string // by what it is built from
}

// NewHangs prepares for the length of a test. It wants root: only that reads the kernel stacks
// by which a process is known to hang.
func NewHangs(tb testing.TB) *Hangs {
	tb.Helper()
	testneed.Root(tb)
	return &Hangs{newBuilder(tb), map[string]string{}}
}

func (hs *Hangs) program(tb testing.TB, libc Libc) string {
	tb.Helper()
	p := hangPrograms[libc]
	if !Guest() {
		testneed.Program(tb, p.tool)
	}
	return hs.build(string(libc), func(b *builder) string { return b.cc(p.tool, p.source, p.flags) })
}

func (hs *Hangs) build(what string, make func(b *builder) string) string {
	if hs.built[what] == "" {
		hs.built[what] = make(hs.b)
	}
	return hs.built[what]
}

// HasLibc reports whether this machine has, or can build, programs of a C library.
func HasLibc(libc Libc) bool {
	p := hangPrograms[libc]
	if Guest() {
		return prebuilt((&builder{}).out(p.tool, p.source, p.flags)) != ""
	}
	return len(testneed.Missing(p.tool)) == 0
}

// StartRust is the case abba by the mutexes of Rust's standard library.
func (hs *Hangs) StartRust(tb testing.TB) *Hang {
	tb.Helper()
	testneed.Program(tb, "gcc", "rustc")
	program := hs.build("rust", func(b *builder) string { return b.rust("hang.rs") })
	return startHang(tb, "abba", launch{name: "hang rust", argv: []string{program}})
}

// StartGo is the case abba by Go's sync.Mutex, and a receiver whose channel nobody knows.
func (hs *Hangs) StartGo(tb testing.TB) *Hang {
	tb.Helper()
	testneed.Program(tb, "go")
	program := hs.build("go", func(b *builder) string {
		out := b.file("hang.go.out")
		b.run("go", "build", "-o", out, "hang/main.go")
		return b.done(out)
	})
	return startHang(tb, "abba", launch{name: "hang go", argv: []string{program}})
}
