//go:build linux && (amd64 || arm64)

package hanglab

import "stackshot/internal/waits"

// endMixed are cycles through files and locks.
func endMixed() []*Case {
	// first opens the file once more, if it is to wait for the inode and not for the position of the
	// open file description, whose lock 6.12.118 holds while it writes to a memfd.
	fault := func(name, file, first, again string, kinds ...waits.Kind) *Case {
		return end(name, "all pipe p", "all memfd m", "all pair x y unix", "rest has p.r", "rest nap", "owner uffd u", "owner spawn server",
			"server has u", "owner close u", "first has x", again, "owner write-page "+file, "server read y", "first write "+first).
			at("owner", atFault, "server").at("server", atSocket, "first").cycle("first", "owner", "server").probably().
			waits("first", "owner", kinds...)
	}
	return []*Case{
		end("futex-and-pipe", "all pipe p", "a lock 0", "b has p.w", "a read p.r", "b lock 0").
			at("a", atPipe, "b").at("b", userMutex, "a").cycle("a", "b"),
		end("full-pipe-and-child", "all pipe p", "a has p.r", "a spawn b", "b fill p.w", "b write p.w", "a wait").
			at("b", atPipe, "a").at("a", []waits.Kind{waits.ChildEnd}, "b").cycle("a", "b"),
		end("flock-and-pipe", "all pipe p", "a file f", "a flock f", "b open-both g f", "b has p.w", "a read p.r", "b flock g").
			at("a", atPipe, "b").at("b", atLock, "a").cycle("a", "b"),
		fault("mutex-and-userfault", "p.w", "p.w", "first has p.w", waits.Mutex),
		fault("rwsem-and-userfault", "m", "n", "first again n m", waits.RWSemWrite, waits.RWSem),
	}
}
