package waits

import (
	"testing"

	"stackshot/kcdata"
)

// Of a set the descriptor by which somebody owes matters; else all are alternatives, if all are
// known; else nobody is named.
func TestSets(t *testing.T) {
	polled := func(object uint64) kcdata.LinuxFile { return pipeFile(object, kcdata.FilePolled) }
	writer := func(tgid uint32, of uint64) kcdata.LinuxEnd { return end(tgid, of, kcdata.EndSame|kcdata.EndWrites) }
	room := change(fullPipe(700), func(f *kcdata.LinuxFile) { f.Flags |= kcdata.FilePolled })
	event := kcdata.LinuxFile{Flags: still | kcdata.FilePolled | kcdata.FileToRead, Kind: kcdata.FileEventfd, Object: 800}
	listening := kcdata.LinuxFile{Flags: still | kcdata.FilePolled | kcdata.FileToRead, Kind: kcdata.FileSocket, Object: 810, Fd: 3}
	listens := []kcdata.LinuxSocket{{Fd: 3, Family: afInet, Kind: sockStream, Flags: kcdata.SocketListens, LocalPort: 80}}
	epoll := kcdata.LinuxFile{Flags: still, Op: kcdata.FileOpEpoll, Kind: kcdata.FileEpoll, Object: 820}
	reader := end(22, 700, kcdata.EndSame|kcdata.EndReads)
	few := func(n uint32) func(w *world, th *kcdata.Thread) {
		return func(w *world, th *kcdata.Thread) {
			th.Wait = &kcdata.LinuxWait{Flags: kcdata.WaitFewFiles, Files: n}
		}
	}
	for _, c := range []story{
		{"one", inPoll, 0, files(polled(500)), nil, theEnds(writer(20, 500)), nil, Poll, "other_end 20!", false, 0, "", Likely, After, ""},
		{"two", inPoll, 0, files(polled(500), polled(600)), nil, theEnds(writer(21, 600), writer(20, 500), writer(20, 600)), nil, Poll, "other_end 20!, other_end 21!", true, 0, "", Likely, After, ""},
		{"an own pipe, and one", inPoll, 0, files(polled(500), polled(600)), nil, theEnds(writer(10, 500), writer(21, 600)), nil, Poll, "other_end 21!", false, 0, "", Likely, After, ""},
		{"one owes", inPoll, 0, files(polled(500), room, polled(600)), nil, theEnds(writer(20, 500), writer(21, 600), reader), nil, Poll, "other_end 22!$", false, 2, "", Likely, After, ""},
		{"one owes, of 40", inPoll, 0, files(room), nil, theEnds(reader), few(40), Poll, "other_end 22!$", false, 39, "", Likely, After, ""},
		{"nobody owes, of 40", inPoll, 0, files(polled(500)), nil, theEnds(writer(20, 500)), few(40), Poll, "", false, 40, "", Sure, File, ""},
		{"one is not known", inPoll, 0, files(polled(500), polled(600)), nil, theEnds(writer(20, 500)), nil, Poll, "", false, 2, "", Sure, File, ""},
		{"an eventfd", inPoll, 0, files(polled(500), event), nil, theEnds(writer(20, 500), end(10, 800, kcdata.EndSame)), nil, Poll, "", false, 2, "", Sure, File, ""},
		{"a server", inEpoll, 0, files(epoll, listening, polled(500)), listens, theEnds(writer(20, 500)), nil, Poll, "", false, 2, Serves, Sure, File, ""},
		{"a server that is owed", inEpoll, 0, files(epoll, listening, room), listens, theEnds(reader), nil, Poll, "other_end 22!$", false, 1, "", Likely, After, ""},
		{"a handler", inPoll, 0, files(pipeFile(500, kcdata.FilePolled|kcdata.FileCatches)), nil, theEnds(writer(20, 500)), nil, Poll, "", false, 1, "", Sure, File, ""},
		{"an epoll of nothing", inEpoll, 0, files(epoll), nil, nil, nil, Poll, "", false, 0, "none", Sure, Stack, ""},
		{"a set that is not in memory", inPoll, 0, files(kcdata.LinuxFile{Flags: kcdata.FilePolled | kcdata.FileNoSet, Fd: -1}), nil, nil, nil, Poll, "", false, 1, NotLooked, Sure, File, ""},
	} {
		want := map[string]uint64{"one owes": 700, "an own pipe, and one": 600}[c.name]
		if got := c.run(t); want != 0 && got.File.File.Object != want {
			t.Errorf("%s: file %+v", c.name, got.File.File)
		}
	}
}

// A client that polls a set of which one is a connection waits for nothing in particular; one that
// polls this one alone waits for an answer.
func TestPollingClients(t *testing.T) {
	f := streamFile(500, 600, kcdata.FilePolled)
	e := end(20, 500, kcdata.EndPeer)
	un := []kcdata.LinuxSocket{unixClient()}
	for _, c := range []story{
		{"alone", inPoll, 0, files(f), un, theEnds(e), nil, Poll, "other_end 20!$", false, 0, "", Likely, After, "any"},
		{"of two", inPoll, 0, files(f, pipeFile(700, kcdata.FilePolled)), un, theEnds(e), nil, Poll, "", false, 2, "", Sure, File, ""},
	} {
		c.run(t)
	}
}

// Terminals: who reads is at rest, who writes waits for the other side to read.
func TestTerminals(t *testing.T) {
	slave := kcdata.LinuxFile{Flags: still | kcdata.FilePeerKnown | kcdata.FileToWrite, Op: kcdata.FileOpWrite, Kind: kcdata.FileTerminal, Object: 500, Peer: 400, File: 1}
	master := end(20, 500, kcdata.EndPeer)
	for _, c := range []story{
		{"a pty whose master does not read", inTTY, 0, files(slave), nil, theEnds(master), nil, Terminal, "other_end 20!$", false, 0, "", Likely, After, ""},
		{"a shell", []string{"n_tty_read"}, 0, files(change(slave, func(f *kcdata.LinuxFile) { f.Flags = still | kcdata.FileToRead })), nil, theEnds(master), nil, Terminal, "", false, 0, Serves, Sure, File, ""},
		{"a console", inTTY, 0, files(change(slave, func(f *kcdata.LinuxFile) { f.Peer = 0 })), nil, nil, nil, Terminal, "", false, 0, "", Sure, File, "no other side"},
		{"expect", []string{"n_tty_read"}, 0, files(change(slave, func(f *kcdata.LinuxFile) { f.Kind, f.Flags = kcdata.FilePTMaster, still|kcdata.FileToRead })), nil, theEnds(master), nil, Terminal, "other_end 20!", false, 0, "", Likely, After, ""},
	} {
		if got := c.run(t); got.Resource != (Resource{Kind: Terminal, ID: map[bool]uint64{true: 500, false: 400}[c.name == "a console"]}) {
			t.Errorf("%s: %+v", c.name, got.Resource)
		}
	}
}

// Files that are no streams.
func TestEvents(t *testing.T) {
	at := func(kind uint32) []kcdata.LinuxFile {
		return files(kcdata.LinuxFile{Flags: still | kcdata.FileToRead, Kind: kind, Object: 500, Op: kcdata.FileOpRead})
	}
	in := func(f string) []string { return []string{f} }
	both := theEnds(end(10, 500, kcdata.EndSame), end(20, 500, kcdata.EndSame))
	for _, c := range []story{
		{"eventfd of two", in("eventfd_read"), 0, at(kcdata.FileEventfd), nil, both, nil, Descriptor, "other_end 20!", false, 0, "", Likely, After, "its own process"},
		{"eventfd of its own", in("eventfd_read"), 0, at(kcdata.FileEventfd), nil, both[:1], nil, Descriptor, "", false, 0, "", Sure, After, ""},
		{"inotify", in("inotify_read"), 0, at(kcdata.FileInotify), nil, nil, nil, Descriptor, "", false, 0, Serves, Sure, File, ""},
		{"a FUSE server", in("fuse_dev_do_read"), 0, at(kcdata.FileFUSE), nil, nil, nil, Descriptor, "", false, 0, Serves, Sure, File, ""},
	} {
		c.run(t)
	}
	timer := story{"timerfd", in("timerfd_read"), 0, at(kcdata.FileTimerfd), nil, nil, nil, Descriptor, "", false, 0, "", Sure, File, ""}
	if got := timer.run(t); !got.Timed {
		t.Errorf("%+v", got)
	}
}

// Both sides of a connection wait at one resource.
func TestTwoSidesAreOneResource(t *testing.T) {
	w := newWorld()
	a, b := w.task(10, 1, asleep, inTCP...), w.task(20, 1, asleep, inTCP...)
	fa, fb := streamFile(500, 0, 0), streamFile(600, 0, 0)
	a.Files, b.Files = files(fa), files(fb)
	a.Sockets = []kcdata.LinuxSocket{tcp(4000, 80, [4]byte{10, 0, 0, 1})}
	b.Sockets = []kcdata.LinuxSocket{tcp(80, 4000, [4]byte{10, 0, 0, 1})}
	ea, eb := end(20, 500, kcdata.EndPair), end(10, 600, kcdata.EndPair)
	ea.Object, eb.Object = 600, 500
	w.s.Ends = theEnds(ea, eb)
	all := w.of()
	if x, y := all.Of[a], all.Of[b]; x.Resource != y.Resource || x.Resource != (Resource{Kind: Socket, ID: 500}) || whole(x) != "other_end 20!" || whole(y) != "other_end 10!" {
		t.Errorf("%+v %+v", x, y)
	}
}
