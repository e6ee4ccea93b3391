//go:build linux && (amd64 || arm64)

package hanglab

import (
	"slices"
	"strings"

	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// endOwed are of one who waits for an answer that another owes.
func endOwed() []*Case {
	var all []*Case
	stopped, asleep := []waitgraph.Reason{waitgraph.Stopped}, []waitgraph.Reason{waitgraph.Asleep}
	busy := []waitgraph.Reason{waitgraph.Running, waitgraph.Runnable}
	for _, family := range []string{"unix", "tcp4", "tcp6"} {
		all = append(all,
			owed(family+"-server-asleep", family, asleep, "srv accept s l", "c put c", "srv nap", "c read c"),
			owed(family+"-server-stopped", family, stopped, "srv accept s l", "c put c", "srv stop", "c read c"),
			owed(family+"-server-busy", family, busy, "srv accept s l", "c put c", "srv busy", "c read c"))
	}
	return append(all,
		// The request is read, and the server sleeps for a time: it may send news at intervals.
		end("unix-server-read-it", "srv listen l unix", "c connect c l", "srv accept s l", "c put c", "srv take s", "srv nap", "c read c").
			at("c", atSocket, "srv"),
		owed("half-closed", "tcp4", stopped, "srv accept s l", "c put c", "c shut c", "srv stop", "c read c"),
		// Whose server waits for an answer from outside.
		owed("server-of-outside", "unix", asleep, "srv accept s l", "c put c", "srv take s", "srv netns", "srv established d 192.0.2.9 80", "srv read d", "c read c").
			at("srv", atSocket).says(waits.Elsewhere).remote("192.0.2.9:80"),
		// Nobody has accepted the connection.
		owed("unix-not-accepted", "unix", stopped, "srv stop", "c put c", "c read c"),
		owed("tcp4-not-accepted", "tcp4", stopped, "srv stop", "c put c", "c read c"),
		queue("unix-queue-full", "unix", "stop", stopped), queue("unix-queue-full-asleep", "unix", "nap", asleep),
		queue("seqpacket-queue-full", "seqpacket", "stop", stopped), queue("tcp4-queue-full", "tcp4", "stop", stopped),
		overfilled("datagram-queue-full", "stop").accuses(Culprit{"srv", stopped, group("c", 2)}),
		end("full-pipe-reader-stopped", "all pipe p", "b has p.r", "b stop", "a fill p.w", "a write p.w").
			at("a", atPipe, "b").accuses(culprit("b", waitgraph.Stopped, "a")),
		// Nobody has to make room soon.
		overfilled("datagram-queue-full-asleep", "nap"),
		end("pty-master-does-not-read", "all pty t", "a has t.m", "a nap", "b fill t.s", "b write t.s").at("b", atTerminal, "a"),
		end("pty-master-stopped", "all pty t", "a has t.m", "a stop", "b fill t.s", "b write t.s").
			at("b", atTerminal, "a").accuses(culprit("a", waitgraph.Stopped, "b")),
	)
}

// owed is of a client c and a server srv.
func owed(name, family string, why []waitgraph.Reason, steps ...string) *Case {
	steps = append([]string{"srv listen l " + family, "c connect c l"}, steps...)
	return end(name, steps...).at("c", atSocket, "srv").accuses(Culprit{"srv", why, []string{"c"}})
}

// queue is of one who waits until there is room for its connection.
func queue(name, family, does string, why []waitgraph.Reason) *Case {
	c := end(name, "srv listen l "+family+" 0", "first connect x l", "first nap", "srv "+does, "c reach l")
	return c.at("c", atSocket, "srv").accuses(Culprit{"srv", why, []string{"c"}})
}

// overfilled is of two who wait until there is room for their datagrams.
func overfilled(name, does string) *Case {
	return end(name, "srv bind x dgram", "srv "+does, "c*2 overfill x").at("c0", atSocket, "srv").at("c1", atSocket, "srv")
}

// endAtRest wait as they should: nobody is to blame.
func endAtRest() []*Case {
	pool := func(name, family string) *Case {
		steps := []string{"srv listen l F", "srv*3 has l", "c*3 connect c l", "srv0 accept s l", "srv1 accept s l", "srv2 accept s l",
			"c*3 nap", "srv*3 read s", "srv await l"}
		for i, s := range steps {
			steps[i] = strings.ReplaceAll(s, " F", " "+family)
		}
		steps[0] = strings.Replace(steps[0], "srv", "all", 1)
		return end(name, steps...).at("srv", atSocket).says(waits.Serves).
			at("srv0", atSocket).says(waits.Serves).at("srv1", atSocket).says(waits.Serves).at("srv2", atSocket).says(waits.Serves)
	}
	return []*Case{
		end("accept-at-rest", "a listen l unix", "a await l").at("a", atSocket).says(waits.Serves),
		end("accept-at-rest-tcp", "a listen l tcp4", "a await l").at("a", atSocket).says(waits.Serves),
		pool("idle-pool-unix", "unix"), pool("idle-pool-tcp4", "tcp4"),
		end("eventfd", "all eventfd e", "b has e", "b nap", "a read e").at("a", []waits.Kind{waits.Descriptor}, "b"),
		end("timerfd-not-armed", "a timerfd t", "a read t").at("a", []waits.Kind{waits.Descriptor, waits.Timer}),
		end("pty-master-does-not-write", "all pty t", "a has t.m", "a nap", "b read t.s").at("b", atTerminal).says(waits.Serves),
		end("udp", "a bind x udp4", "a read x").at("a", atSocket).says(waits.Serves),
	}
}

// endSets wait at one of many files of which one matters: to that a request was sent. The first
// 16 of a set are in the record, of an epoll's in the order of addresses.
func endSets() (all []*Case) {
	set := func(name string, steps ...string) *Case {
		return end(name, slices.Concat(steps[:1], []string{"srv listen l unix", "a connect c l", "srv accept s l", "a put c", "srv stop"}, steps[1:])...)
	}
	for _, call := range []string{"poll", "epoll", "select"} {
		c := set(call+"-of-15", "all pair x y unix 14", "idle has y", "idle nap", "a "+call+" -1 0 x c").
			at("a", atSet, "srv").accuses(culprit("srv", waitgraph.Stopped, "a"))
		all = append(all, c)
	}
	first := set("poll-of-40", "all pair x y unix 39", "idle has y", "idle poll -1 0 y", "a poll -1 0 c x").
		at("a", atSet, "srv").at("idle", atSet).accuses(culprit("srv", waitgraph.Stopped, "a"))
	late := set("late-poll-of-40", "all pair x y unix 39", "idle has y", "idle nap", "a poll -1 0 x c").at("a", atSet)
	return append(all, first, late)
}

// endOutside are of connections that leave the machine.
func endOutside() []*Case {
	return []*Case{
		end("outside-connect", "all netns", "a reach 192.0.2.7 80").at("a", atSocket).says(waits.Elsewhere).remote("192.0.2.7:80"),
		end("outside-answer", "all netns", "a established c 192.0.2.7 5432", "a read c").at("a", atSocket).says(waits.Elsewhere).remote("192.0.2.7:5432"),
		end("outside-poll", "all netns", "a established c 192.0.2.8 5432", "a poll -1 0 c").at("a", atSet).says(waits.Elsewhere).remote("192.0.2.8:5432"),
	}
}
