//go:build linux && (amd64 || arm64)

package hangscenes

import (
	"testing"
	"time"

	"stackshot/internal/userlab"
)

func healthy() []*Scene {
	return []*Scene{
		{Name: "healthy", Healthy: true, start: services, Age: 1100 * time.Millisecond}, // those that wait have waited for long
		{Name: "turns", Healthy: true, start: turns, Age: 1300 * time.Millisecond},
		{Name: "runtimes-rest", Healthy: true, start: runtimesRest, lacks: noRuntimes, Age: 1300 * time.Millisecond},
		{Name: "busy", Healthy: true, start: build, Age: 500 * time.Millisecond, Again: true},
		{Name: "idle", Healthy: true, start: func(testing.TB, *userlab.Hangs) Standing { return Standing{} }},
	}
}

// services have workers that wait for requests, and clients that come and go.
func services(tb testing.TB, hangs *userlab.Hangs) Standing {
	for _, name := range []string{"rpc-tcp", "chain", "bus", "jobs", "contained"} {
		hangs.StartHealthy(tb, name, userlab.Healthy()[name])
	}
	return Standing{}
}

// turns are pools whose members take turns with a lock held, and what waits for others that work.
func turns(tb testing.TB, hangs *userlab.Hangs) Standing {
	hangs.StartScene(tb, userlab.Scene{Name: "turns", Words: []string{"turns"}})
	hangs.StartHealthy(tb, "queues", userlab.Healthy()["queues"])
	return Standing{Says: []string{`(?m)^nothing is stuck$`, `\n33 in line for up to \d\.\d s: 6 behind cron \[\d+\] \(a file lock\)`}}
}

// runtimesRest are pools that take turns with locks of Rust and Java, and the initialization of a C++ static
// that takes long. Java has one of those who wait for a monitor look again from time to time.
func runtimesRest(tb testing.TB, hangs *userlab.Hangs) Standing {
	hangs.StartRuntimes(tb, "rest")
	return Standing{Says: []string{`(?m)^nothing is stuck$`, `\n1[45] in line for up to \d\.\d s: `}}
}

// build is as many processes that compute as a machine has CPUs, and they come and go.
func build(tb testing.TB, hangs *userlab.Hangs) Standing {
	hangs.StartScene(tb, userlab.Scene{Name: "storm", Words: []string{"compiler", "2", "50"}, Life: Life})
	return Standing{Not: []string{`\bcompiler\b`}}
}
