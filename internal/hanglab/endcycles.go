//go:build linux && (amd64 || arm64)

package hanglab

import (
	"fmt"
	"strings"

	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// endCycles are of processes that wait for each other's answers.
func endCycles() []*Case {
	all := []*Case{
		// Two datagram sockets, each connected to the other.
		end("dgram-cycle", "a bind x dgram", "b bind y dgram", "a reconnect x y", "b reconnect y x", "a read x", "b read y").
			at("a", atSocket, "b").at("b", atSocket, "a").cycle("a", "b").probably(),
		end("socketpair-cycle", "all pair x y unix", "a read x", "b read y").
			at("a", atSocket, "b").at("b", atSocket, "a").cycle("a", "b"),
		end("pipe-cycle", "all pipe p", "all pipe q", "a has q.w", "b has p.w", "a read p.r", "b read q.r").
			at("a", atPipe, "b").at("b", atPipe, "a").cycle("a", "b"),
		end("full-pipe-cycle", "all pipe p", "all pipe q", "a has p.r", "b has q.r", "a fill q.w", "b fill p.w", "a write q.w", "b write p.w").
			at("a", atPipe, "b").at("b", atPipe, "a").cycle("a", "b"),
		end("pipe-ring", "all pipe p", "all pipe q", "all pipe r", "a has q.w", "b has r.w", "c has p.w", "a read p.r", "b read q.r", "c read r.r").
			at("a", atPipe, "c").at("b", atPipe, "a").at("c", atPipe, "b").cycle("a", "c", "b"),
		end("fifo-cycle", append(fifos("f", "g"), "a has g.w", "b has f.w", "a read f.r", "b read g.r")...).
			at("a", atPipe, "b").at("b", atPipe, "a").cycle("a", "b").probably(),
		// A request of each to the other, in nested containers.
		asking("contained-cycle", "unix", "all pidns", "all netns", "all pidns"),
		asking("contained-tcp-cycle", "tcp4", "all pidns", "all netns", "all pidns").probably(),
		// One who catches signals may go on by one.
		asking("catching-cycle", "unix", "a catch").probably(),
		// Each of the process's threads that could answer waits in the cycle, too.
		end("two-threads-cycle", "all pipe p", "all pipe q", "all pipe r", "a has q.w", "b has p.w", "b has r.w", "a read p.r", "a.2 read r.r", "b read q.r").
			at("a", atPipe, "b").at("a.2", atPipe, "b").at("b", atPipe, "a").cycle("a", "b"),
		// One of them does not: it may write when its sleep is over.
		end("free-thread", "all pipe p", "all pipe q", "a has q.w", "b has p.w", "a read p.r", "a.2 nap", "b read q.r").
			at("a", atPipe, "b").at("b", atPipe, "a"),
		// All end by themselves.
		end("timeouts", "all pipe p", "all pipe q", "a has q.w", "b has p.w", "a poll 600000 0 p.r", "b select 600000 0 q.r").
			at("a", atSet, "b").at("b", atSet, "a"),
	}
	for _, family := range []string{"unix", "seqpacket", "tcp4", "tcp6"} {
		two, three := asking(family+"-cycle", family), ring(family+"-ring", family)
		if strings.HasPrefix(family, "tcp") { // who of the two was connected to is a guess
			two.probably()
			three.probably()
		}
		all = append(all, two, three)
	}
	return append(all, append(writers(), ownEnds()...)...)
}

// asking is of two servers that ask each other, one request each, and a third one that asks
// the first. The second has read its request; those to the first lie unread.
func asking(name, family string, before ...string) *Case {
	steps := append(before, "a listen la F", "b listen lb F", "a connect ab lb", "b accept ba lb", "b connect bc la", "a accept ac la",
		"a put ab", "b take ba", "b put bc", "c connect ca la", "c put ca", "a read ab", "b read bc", "c read ca")
	for i, s := range steps {
		steps[i] = strings.ReplaceAll(s, " F", " "+family)
	}
	return end(name, steps...).at("a", atSocket, "b").at("b", atSocket, "a").at("c", atSocket, "a").cycle("a", "b").behind("c")
}

func ring(name, family string) *Case {
	var steps []string
	for _, r := range []string{"a", "b", "c"} {
		steps = append(steps, fmt.Sprintf("%s listen l%s %s", r, r, family))
	}
	for _, r := range [][2]string{{"a", "b"}, {"b", "c"}, {"c", "a"}} {
		steps = append(steps, fmt.Sprintf("%s connect to%s l%s", r[0], r[1], r[1]), fmt.Sprintf("%s accept of%s l%s", r[1], r[0], r[1]))
	}
	steps = append(steps, "a put tob", "b take ofa", "b put toc", "c take ofb", "c put toa", "a read tob", "b read toc", "c read toa")
	return end(name, steps...).at("a", atSocket, "b").at("b", atSocket, "c").at("c", atSocket, "a").cycle("a", "b", "c")
}

// fifos are made and opened both ways, as "f.r" and "f.w".
func fifos(names ...string) (steps []string) {
	for _, f := range names {
		steps = append(steps, "all fifo "+f, "all open-both "+f+".both "+f, "all open-to-read "+f+".r "+f, "all open-to-write "+f+".w "+f)
	}
	return steps
}

// writers are of a pipe with three: all of them have to be stuck.
func writers() []*Case {
	three := func(name, last string) *Case {
		return end(name, "all pipe p", "r lock 0", "w*3 has p.w", "r read p.r", "w0 lock 0", "w1 lock 0", last).
			at("r", atPipe, "w0", "w1", "w2").at("w0", userMutex, "r").at("w1", userMutex, "r")
	}
	return []*Case{
		three("three-writers-stuck", "w2 lock 0").at("w2", userMutex, "r").cycle("r", "w0"),
		// The reader is to blame for having a lock while it waits.
		three("one-writer-free", "w2 nap").accuses(culprit("r", waitgraph.Asleep, "w0", "w1")),
	}
}

// ownEnds are of readers who hold the writing end themselves.
func ownEnds() []*Case {
	own := end("own-end", "all pipe p", "a has p.w", "a read p.r").at("a", atPipe, "a").says(waits.OwnEnd).cycle("a").probably()
	// A program that writes to itself from a signal's handler.
	caught := end("own-end-caught", "all pipe p", "a catch", "a has p.w", "a read p.r").at("a", atPipe)
	polled := end("own-end-polled", "all pipe p", "a has p.w", "a poll -1 0 p.r").at("a", atSet)
	// A daemon keeps its FIFO open both ways, lest it read an end between two clients.
	both := end("fifo-both", "all fifo f", "a open-both f f", "a read f").at("a", atPipe).says(waits.Serves)
	shared := end("own-end-shared", "all pipe p", "a has p.w", "b has p.w", "b nap", "a read p.r").at("a", atPipe, "b")
	nobody := end("fifo-without-writer", "all fifo f", "a open-to-read f f").at("a", atPipe).says(waits.NotOpened)
	return []*Case{own, caught, polled, both, shared, nobody}
}
