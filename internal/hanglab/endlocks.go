//go:build linux && (amd64 || arm64)

package hanglab

import "stackshot/internal/waitgraph"

// endLocks wait for locks of files.
func endLocks() []*Case {
	behind := func(name string, n string, take string, roles ...string) *Case {
		c := end(name, "h file f", "h "+take+" f 0", "h stop", "w*"+n+" open-both g f", "w*"+n+" "+take+" g 0").
			accuses(culprit("h", waitgraph.Stopped, roles...))
		for _, r := range roles {
			c.at(r, atLock, "h")
		}
		return c
	}
	return []*Case{
		behind("flock-convoy", "50", "flock", group("w", 50)...),
		behind("posix-lock", "3", "posix", group("w", 3)...),
		behind("ofd-lock", "3", "ofd", group("w", 3)...),
		// The kernel looks for cycles of POSIX locks only.
		end("ofd-cycle", "a file f", "a ofd f 0", "b open-both g f", "b ofd g 1", "a ofd f 1", "b ofd g 0").
			at("a", atLock, "b").at("b", atLock, "a").cycle("a", "b"),
		end("flock-cycle", "a file f", "a flock f", "b file g", "b flock g", "a open-both x g", "b open-both y f", "a flock x", "b flock y").
			at("a", atLock, "b").at("b", atLock, "a").cycle("a", "b"),
		// A lock of flock belongs to the open file description, which a child has, too.
		end("flock-inherited", "all file f", "all flock f", "h has f", "h stop", "w open-both g f", "w flock g").
			at("w", atLock, "h").accuses(culprit("h", waitgraph.Stopped, "w")),
	}
}
