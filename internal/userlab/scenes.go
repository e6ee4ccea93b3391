//go:build linux

package userlab

import (
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
)

var scenesProgram = cProgram{"scenes.c", "-O2 -g -pthread -Wno-unused-result"}

// A Scene is one of scenes.c, and how it is started.
type Scene struct {
	Name  string
	Words []string
	// Life is after what time whatever takes CPU time in it ends by itself.
	Life time.Duration
	// Nice is the nice level of roles; all others keep that of every program here, 19.
	Nice map[string]int
}

// StartScene starts a scene, and returns when all of its processes and threads are made. It
// ends with the test.
func (hs *Hangs) StartScene(tb testing.TB, s Scene) *Hang {
	tb.Helper()
	if !Guest() {
		testneed.Program(tb, "gcc")
	}
	bin := hs.build("scenes", func(b *builder) string { return b.program(scenesProgram) })
	seconds := strconv.Itoa(int(s.Life / time.Second))
	h := &Hang{Case: s.Name, Process: run(tb, launch{name: "scene " + s.Name, any: true,
		argv: append([]string{bin, s.Name, seconds}, s.Words...)})}
	if err := h.cast(); err != nil {
		tb.Fatalf("userlab: %s: %v", h.Name, err)
	}
	for role, nice := range s.Nice {
		if err := unix.Setpriority(unix.PRIO_PROCESS, h.Parts[role].Tid, nice); err != nil {
			tb.Fatalf("userlab: %s: nice %d of %s: %v", h.Name, nice, role, err)
		}
	}
	return h
}

// RuntimePrograms are what the services of StartRuntimes are built and run with.
var RuntimePrograms = []string{"gcc", "rustc", "g++", "java", "javac"}

// StartRuntimes starts one service each of Rust, C++ and Java, that hang at locks of their own or rest there, by
// the word hang or rest. They end with the test.
func (hs *Hangs) StartRuntimes(tb testing.TB, word string) (all []*Hang) {
	tb.Helper()
	testneed.Program(tb, RuntimePrograms...)
	rust := hs.build("scenes.rs", func(b *builder) string { return b.rust("scenes.rs") })
	cpp := hs.build("scenes.cpp", func(b *builder) string { return b.cc("g++", "scenes.cpp", "-O2 -g -pthread") })
	java := hs.build("Scenes.java", func(b *builder) string {
		b.run("javac", "Scenes.java")
		return b.done(b.file(""))
	})
	for _, argv := range [][]string{{rust}, {cpp}, {"java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-cp", java, "Scenes"}} {
		all = append(all, &Hang{Case: word, Process: run(tb, launch{name: "scene " + argv[0], any: true, argv: append(argv, word)})})
	}
	return all
}
