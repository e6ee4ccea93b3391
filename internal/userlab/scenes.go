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
