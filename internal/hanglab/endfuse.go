//go:build linux && (amd64 || arm64)

package hanglab

import (
	"strings"

	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// endFUSE wait for a file system whose server does not answer.
func endFUSE() (all []*Case) {
	stalled := func(name, mount string, n int, steps ...string) *Case {
		c := end(name, steps...).accuses(culprit("server", waitgraph.Asleep, group("w", n)...))
		for _, w := range group("w", n) {
			c.at(w, atFUSE, "server")
			c.Files[len(c.Files)-1].Mount = mount
		}
		return c
	}
	all = []*Case{
		stalled("fuse-read", "m", 20, "server fuse m", "server serve m read nap", "w*20 open f m/file", "w*20 read f"),
		stalled("fuse-bind", "m", 3, "server fuse m", "server serve m read nap", "binder bind-mount m b", "binder nap", "w*3 open f b/file", "w*3 read f"),
		stalled("fuse-mount-namespace", "m", 3, "server mntns", "server fuse m", "server spawn w0", "server spawn w1", "server spawn w2",
			"server serve m read nap", "w*3 open f m/file", "w*3 read f"),
		stalled("fuse-stat", "m", 3, "server fuse m", "server serve m stat nap", "w*3 stat m/file"),
		stalled("fuse-open", "m", 3, "server fuse m", "server serve m open nap", "w*3 open-to-read f m/file"),
		stalled("fuse-flock", "m", 3, "server fuse m", "server serve m lock nap", "w*3 open f m/file", "w*3 flock f"),
		stalled("fuse-fsync", "m", 1, "server fuse m", "server serve m fsync nap", "w0 open f m/file", "w0 fsync f"),
		end("fuse-server-stopped", "server fuse m", "server serve m read stop", "w open f m/file", "w read f").
			at("w", atFUSE, "server").accuses(culprit("server", waitgraph.Stopped, "w")),
		// The server waits for one who waits for it.
		end("fuse-cycle", "all pair x y unix", "server fuse m", "server serve m read recv y", "w has x", "w open f m/file", "w read f").
			at("w", atFUSE, "server").at("server", atSocket, "w").cycle("server", "w"),
		// One reads by an open file description that both have, and the other waits for its position.
		end("position-over-fuse", "server fuse m", "server serve m read nap", "h open f m/file", "h spawn w", "h read f", "w read f").
			at("h", atFUSE, "server").waits("w", "h", waits.FilePosition).accuses(culprit("server", waitgraph.Asleep, "h", "w")),
		// Its process executes another program, for which this thread has to end.
		end("exec-over-fuse", "server fuse m", "server serve m read nap", "app.r open f m/file", "app.r read f", "app exec").
			at("app.r", atFUSE, "server").waits("app", "app.r", waits.Threads).accuses(culprit("server", waitgraph.Asleep, "app", "app.r")),
		// A lock held over it: all behind the lock are its victims, too.
		end("flock-over-fuse", "server fuse m", "server serve m read nap", "h file f", "h flock f", "h open g m/file", "h read g", "w*3 open-both k f", "w*3 flock k").
			at("h", atFUSE, "server").at("w0", atLock, "h").at("w1", atLock, "h").at("w2", atLock, "h").
			accuses(culprit("server", waitgraph.Asleep, "h", "w0", "w1", "w2")),
	}
	for _, c := range all {
		if strings.Contains(c.Name, "fuse") {
			c.needs(noFUSE)
		}
	}
	return all
}
