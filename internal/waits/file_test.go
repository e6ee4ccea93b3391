package waits

import (
	"slices"
	"testing"

	"stackshot/kcdata"
)

// story is one thread (10) that waits at files, beside processes 20, 21, 22.
type story struct {
	name   string
	stack  []string
	state  uint32
	files  []kcdata.LinuxFile
	socks  []kcdata.LinuxSocket
	ends   []kcdata.LinuxEnd
	do     func(w *world, th *kcdata.Thread)
	kind   Kind
	owners string
	any    bool
	others int
	says   FileSays
	conf   Confidence
	ev     Evidence
	note   string
}

func (c *story) run(t *testing.T) *Wait {
	t.Helper()
	w := newWorld()
	if c.state == 0 {
		c.state = asleep
	}
	th := w.task(10, 1, c.state, c.stack...)
	th.Files, th.Sockets, w.s.Ends = c.files, c.socks, c.ends
	for _, pid := range []uint32{20, 21, 22} {
		w.task(pid, 1, asleep, inWait...)
	}
	if c.do != nil {
		c.do(w, th)
	}
	all := w.of()
	sound(t, w.s, all)
	got := all.Of[th]
	others := 0
	if got.File != nil {
		others = got.File.Others
	}
	if got.Kind != c.kind || whole(got) != c.owners || got.AnyOwner != c.any || others != c.others || says(got) != c.says || got.Confidence != c.conf || got.Evidence != c.ev {
		t.Errorf("%s: kind %s, owners %q, any %v, others %d, says %q, %s, %s; want %s, %q, %v, %d, %q, %s, %s", c.name,
			got.Kind, whole(got), got.AnyOwner, others, says(got), got.Confidence, got.Evidence, c.kind, c.owners, c.any, c.others, c.says, c.conf, c.ev)
	}
	if c.note != "any" {
		wantNote(t, c.name, got, c.note)
	}
	return got
}

func files(f ...kcdata.LinuxFile) []kcdata.LinuxFile { return f }
func theEnds(e ...kcdata.LinuxEnd) []kcdata.LinuxEnd { return e }

// change is f with something else.
func change(f kcdata.LinuxFile, do func(f *kcdata.LinuxFile)) kcdata.LinuxFile {
	do(&f)
	return f
}

func changeEnd(e kcdata.LinuxEnd, do func(e *kcdata.LinuxEnd)) kcdata.LinuxEnd {
	do(&e)
	return e
}

func noFile(e *kcdata.LinuxEnd) { e.File = 0 }

func secondThread(w *world, th *kcdata.Thread) { w.thread(w.s.Tasks[0], 11, asleep, inFutex...) }

// Pipes: all who can write are alternatives; who has bytes unread owes; the kernel's own counts
// at the instant say that nobody is there.
func TestPipes(t *testing.T) {
	writer := func(tgid uint32) kcdata.LinuxEnd { return end(tgid, 500, kcdata.EndSame|kcdata.EndWrites) }
	reader := func(tgid uint32) kcdata.LinuxEnd { return end(tgid, 500, kcdata.EndSame|kcdata.EndReads) }
	p := pipeFile(500, 0)
	for _, c := range []story{
		{"one writer", inPipe, 0, files(p), nil, theEnds(writer(20)), nil, Pipe, "other_end 20!", false, 0, "", Sure, After, ""},
		{"three writers", inPipe, 0, files(change(p, func(f *kcdata.LinuxFile) { f.Writers = 3 })), nil, theEnds(writer(22), writer(20), writer(21), writer(20)), nil,
			Pipe, "other_end 20!, other_end 21!, other_end 22!", true, 0, "", Sure, After, ""},
		{"a writer is missing", inPipe, 0, files(change(p, func(f *kcdata.LinuxFile) { f.Writers = 2 })), nil, theEnds(writer(20)), nil, Pipe, "other_end 20!", false, 1, "", Likely, After, "1 of the 2 open files"},
		{"on its way through a socket", inPipe, 0, files(p), nil, theEnds(changeEnd(writer(20), func(e *kcdata.LinuxEnd) { e.Refs = 2 })), nil, Pipe, "other_end 20!", false, 0, "", Likely, After, "more references"},
		{"two writers, by /proc", inPipe, 0, files(change(p, func(f *kcdata.LinuxFile) { f.Writers = 2 })), nil, theEnds(changeEnd(writer(20), noFile), changeEnd(writer(21), noFile)), nil, Pipe, "other_end 20!, other_end 21!", true, 0, "", Likely, After, ""},
		{"as many as are kept", inPipe, 0, files(p), nil, slices.Repeat(theEnds(writer(20)), maxSide), nil, Pipe, "other_end 20!", false, 1, "", Likely, After, "only the first"},
		{"as many readers as are kept", inPipe, 0, files(p), nil, append(slices.Repeat(theEnds(reader(20)), maxSide), writer(21)), nil, Pipe, "other_end 21!", false, 0, "", Sure, After, ""},
		{"readers are no writers", inPipe, 0, files(p), nil, theEnds(reader(20)), nil, Pipe, "", false, 0, NotFound, Sure, File, ""},
		{"full", inPipe, 0, files(fullPipe(500)), nil, theEnds(reader(20)), nil, Pipe, "other_end 20!$", false, 0, "", Sure, After, ""},
		{"no writer", inPipe, 0, files(change(p, func(f *kcdata.LinuxFile) { f.Writers = 0 })), nil, nil, nil, Pipe, "", false, 0, NoEnd, Sure, File, ""},
		{"FIFO without a writer", inPipe, 0, files(change(p, func(f *kcdata.LinuxFile) { f.Writers, f.Kind = 0, kcdata.FileFIFO })), nil, nil, nil, Pipe, "", false, 0, NotOpened, Sure, File, ""},
		{"FIFO", inPipe, 0, files(change(p, func(f *kcdata.LinuxFile) { f.Kind = kcdata.FileFIFO })), nil, theEnds(writer(20)), nil, Pipe, "other_end 20!", false, 0, "", Likely, After, ""},
		{"open of a FIFO", []string{"wait_for_partner", "fifo_open"}, 0, nil, nil, nil, func(w *world, th *kcdata.Thread) {
			th.Syscall = &kcdata.LinuxSyscall{Nr: 257, Args: [6]uint64{0, 0, 1}}
		},
			Pipe, "", false, 0, NotOpened, Sure, File, ""},
		{"own end", inPipe, 0, files(p), nil, theEnds(writer(10)), nil, Pipe, "other_end 10!", false, 0, OwnEnd, Likely, After, ""},
		{"own end, with threads", inPipe, 0, files(p), nil, theEnds(writer(10)), secondThread, Pipe, "other_end 10!", false, 0, "", Sure, After, ""},
		{"own end, and another", inPipe, 0, files(change(p, func(f *kcdata.LinuxFile) { f.Writers = 2 })), nil, theEnds(writer(10), writer(20)), nil, Pipe, "other_end 20!", false, 0, "", Sure, After, "would not see"},
		{"own end, with a handler", inPipe, 0, files(pipeFile(500, kcdata.FileCatches)), nil, theEnds(writer(10)), nil, Pipe, "", false, 0, "", Sure, After, "handler"},
		{"own FIFO, both ways", inPipe, 0, files(change(p, func(f *kcdata.LinuxFile) { f.Kind, f.OFlags = kcdata.FileFIFO, 2 })), nil, theEnds(writer(10)), nil, Pipe, "", false, 0, Serves, Sure, After, "both ways"},
		{"self-pipe", inPoll, 0, files(pipeFile(500, kcdata.FilePolled)), nil, theEnds(writer(10)), nil, Poll, "", false, 0, "", Sure, After, "alone"},
		{"handler", inPipe, 0, files(pipeFile(500, kcdata.FileCatches)), nil, theEnds(writer(20)), nil, Pipe, "other_end 20!", false, 0, "", Likely, After, ""},
		{"gone on", inPipe, 0, files(change(p, func(f *kcdata.LinuxFile) { f.Flags = f.Flags&^still | kcdata.FileMoved })), nil, theEnds(writer(20)), nil, Pipe, "", false, 0, NotLooked, Sure, File, "gone on"},
		{"not looked at", inPipe, 0, files(change(p, func(f *kcdata.LinuxFile) { f.Flags &^= still })), nil, theEnds(writer(20)), nil, Pipe, "", false, 0, NotLooked, Sure, File, ""},
		{"time up", inPipe, 0, files(p), nil, nil, func(w *world, th *kcdata.Thread) { w.s.FilesTaken.Flags = kcdata.FilesTimeUp }, Pipe, "", false, 0, NotLooked, Sure, File, ""},
		{"not in the file", inPipe, 0, files(p), nil, theEnds(writer(77)), nil, Pipe, "other_end 77", false, 0, Elsewhere, Sure, After, ""},
		{"another process of that number", inPipe, 0, files(p), nil, theEnds(changeEnd(writer(20), func(e *kcdata.LinuxEnd) { e.Start++ })), nil, Pipe, "", false, 0, "", Sure, After, "another start time"},
		{"younger than the capture", inPipe, 0, files(p), nil, theEnds(changeEnd(writer(77), func(e *kcdata.LinuxEnd) { e.Start = now + 1 })),
			func(w *world, th *kcdata.Thread) { w.s.Machine.BoottimeNs = now }, Pipe, "", false, 0, "", Sure, After, "began after"},
		{"this program", inPipe, 0, files(p), nil, theEnds(writer(20)), func(w *world, th *kcdata.Thread) { w.s.Tasks[1].Linux.Present |= kcdata.TaskIsSelf }, Pipe, "", false, 0, "", Sure, After, "this program"},
		{"in D for a lock of the pipe", inPipe, blocked, files(p), nil, theEnds(writer(20)), nil, Other, "", false, 0, "none", Sure, Stack, "in D"},
		{"a kernel mutex", inPipe, blocked, files(p), nil, theEnds(writer(20)), func(w *world, th *kcdata.Thread) {
			th.Wait = &kcdata.LinuxWait{Flags: kcdata.WaitField | kcdata.WaitOwned, Kind: kcdata.LockMutex, Lock: 7, OwnerTid: 21, OwnerStart: start(21)}
		}, Mutex, "holds 21!?", false, 0, "none", Sure, Field, ""},
		{"asleep for something else", []string{"do_sigtimedwait"}, 0, files(p), nil, theEnds(writer(20)), nil, Signal, "", false, 0, "none", Sure, Stack, ""},
		{"splice to a full pipe", []string{"splice_to_pipe"}, 0, files(change(p, func(f *kcdata.LinuxFile) { f.Object, f.Flags = 600, still|kcdata.FileToRead }), fullPipe(500)), nil, theEnds(reader(20), end(21, 600, kcdata.EndSame|kcdata.EndWrites)),
			nil, Pipe, "other_end 20!$", false, 0, "", Sure, After, ""},
		{"no names", nil, 0, files(p), nil, theEnds(writer(20)), nil, Pipe, "other_end 20!", false, 0, "", Likely, After, "any"},
		{"closed", inPipe, 0, files(change(p, func(f *kcdata.LinuxFile) { f.Flags |= kcdata.FileClosed })), nil, nil, nil, Pipe, "", false, 0, "", Sure, File, "closed while"},
	} {
		c.run(t)
	}
}

// Sockets: who has bytes unread, or an unaccepted connection, owes; who was connected to and reads
// is at rest.
func TestSockets(t *testing.T) {
	peer := func(tgid uint32, unread uint64) kcdata.LinuxEnd {
		e := end(tgid, 500, kcdata.EndPeer)
		e.Object, e.BytesIn, e.Family = 600, unread, afUnix
		return e
	}
	far := func(tgid uint32, unread uint64) kcdata.LinuxEnd {
		e := peer(tgid, unread)
		e.Flags, e.Family, e.NetNS = kcdata.EndPair, afInet, 5
		return e
	}
	listener := func(tgid uint32, p uint16, flags uint32) kcdata.LinuxEnd {
		e := end(tgid, 500, kcdata.EndListens|flags)
		e.Object, e.Family, e.Port, e.NetNS = 900, afInet, p, 5
		return e
	}
	ux, un := streamFile(500, 600, 0), []kcdata.LinuxSocket{unixSocket()}
	far4 := [4]byte{192, 0, 2, 7}
	sock := func(do func(s *kcdata.LinuxSocket)) []kcdata.LinuxSocket {
		s := unixSocket()
		do(&s)
		return []kcdata.LinuxSocket{s}
	}
	tf := streamFile(500, 0, 0)
	tf.Flags &^= kcdata.FilePeerKnown
	ofRoom := func(tgid uint32, flags uint32, unread uint64) kcdata.LinuxEnd {
		e := peer(tgid, unread)
		e.Flags, e.Object = flags|kcdata.EndRoom, 900
		return e
	}
	toSend := func(peer uint64) kcdata.LinuxFile {
		return change(streamFile(500, peer, 0), func(f *kcdata.LinuxFile) {
			f.Op, f.Flags = kcdata.FileOpWrite, still|kcdata.FileToWrite|kcdata.FilePeerKnown
		})
	}
	dgram := sock(func(s *kcdata.LinuxSocket) { s.Kind = sockDgram })
	conn := func(local, remote uint16) []kcdata.LinuxSocket {
		return []kcdata.LinuxSocket{tcp(local, remote, [4]byte{10, 0, 0, 1})}
	}
	for _, c := range []story{
		{"unix", inSocket, 0, files(ux), un, theEnds(peer(20, 0)), nil, Socket, "other_end 20!", false, 0, "", Sure, After, ""},
		{"unix, unread", inSocket, 0, files(ux), un, theEnds(peer(20, 9)), nil, Socket, "other_end 20!$", false, 0, "", Sure, After, ""},
		{"unix, being read", inSocket, 0, files(ux), un, theEnds(peer(20, 9)), func(w *world, th *kcdata.Thread) {
			o := w.s.Tasks[1].Threads[0]
			o.Files, o.Sockets = files(streamFile(600, 500, 0)), un
		}, Socket, "other_end 20!", false, 0, "", Sure, After, ""},
		{"unix, its peer is gone", inSocket, 0, files(streamFile(500, 0, 0)), un, nil, nil, Socket, "", false, 0, NoEnd, Sure, File, ""},
		{"unix, client", inSocket, 0, files(ux), []kcdata.LinuxSocket{unixClient()}, theEnds(peer(20, 0)), nil, Socket, "other_end 20!$", false, 0, "", Sure, After, ""},
		{"unix, server", inSocket, 0, files(ux), []kcdata.LinuxSocket{unixServer()}, theEnds(peer(20, 0)), nil, Socket, "", false, 0, Serves, Sure, File, ""},
		{"unix, not accepted", inSocket, 0, files(ux), un, theEnds(changeEnd(listener(20, 0, kcdata.EndAccepts), func(e *kcdata.LinuxEnd) { e.Family = afUnix })), nil, Socket, "listens 20!$", false, 0, "", Sure, After, ""},
		{"unix, opaque", inSocket, 0, files(streamFile(500, 600, kcdata.FileOpaque)), un, theEnds(peer(20, 9)), nil, Socket, "", false, 0, NotLooked, Sure, File, ""},
		{"unix, its record is lost", inSocket, 0, files(ux), nil, theEnds(peer(20, 9)), nil, Socket, "", false, 0, NotLooked, Sure, File, ""},
		{"unix, far back in the queue", inSocket, 0, files(ux), sock(func(s *kcdata.LinuxSocket) { s.Flags = kcdata.SocketConnected | kcdata.SocketPeerNamed }), nil, nil, Socket, "", false, 0, NotLooked, Sure, File, "only the first 128"},
		{"datagrams from anybody", inSocket, 0, files(streamFile(500, 0, 0)), sock(func(s *kcdata.LinuxSocket) { s.Kind = sockDgram }), nil, nil, Socket, "", false, 0, Serves, Sure, File, ""},
		{"datagrams of a pair", inSocket, 0, files(ux), sock(func(s *kcdata.LinuxSocket) { s.Kind = sockDgram }), theEnds(peer(20, 9)), nil, Socket, "other_end 20!$", false, 0, "", Likely, After, ""},
		{"socketpair of its own", inSocket, 0, files(ux), un, theEnds(peer(10, 0)), nil, Socket, "other_end 10!", false, 0, OwnEnd, Likely, After, ""},
		{"accept", []string{"inet_csk_accept"}, 0, files(change(tf, func(f *kcdata.LinuxFile) { f.Op = kcdata.FileOpAccept })), sock(func(s *kcdata.LinuxSocket) { s.Family, s.Flags = afInet, kcdata.SocketListens }), nil, nil, Socket, "", false, 0, Serves, Sure, File, ""},
		{"TCP, client", inTCP, 0, files(tf), conn(4000, 80), theEnds(far(20, 0), listener(20, 80, 0)), nil, Socket, "other_end 20!$", false, 0, "", Likely, After, "is a guess"},
		{"TCP, client of a client", inTCP, 0, files(tf), conn(4000, 80), theEnds(far(20, 0)), nil, Socket, "other_end 20!", false, 0, "", Sure, After, ""},
		{"TCP, server", inTCP, 0, files(tf), conn(80, 4000), theEnds(far(20, 0), listener(10, 80, 0)), nil, Socket, "", false, 0, Serves, Sure, File, ""},
		{"TCP, unread", inTCP, 0, files(tf), conn(4000, 80), theEnds(far(20, 7), listener(20, 80, 0)), nil, Socket, "other_end 20!$", false, 0, "", Sure, After, ""},
		{"TCP, not accepted", inTCP, 0, files(tf), conn(4000, 80), theEnds(listener(20, 80, kcdata.EndAccepts), listener(21, 80, kcdata.EndAccepts)), nil, Socket, "listens 20!$, listens 21!$", true, 0, "", Sure, After, ""},
		{"TCP, redacted client", inTCP, 0, files(tf), sock(func(s *kcdata.LinuxSocket) { s.Family = afInet }), theEnds(far(20, 0), listener(20, 0, 0)), nil, Socket, "other_end 20!$", false, 0, "", Likely, After, "is a guess"},
		{"TCP, outside", inTCP, 0, files(tf), []kcdata.LinuxSocket{tcp(4000, 5432, far4)}, nil, nil, Socket, "", false, 0, Elsewhere, Sure, File, ""},
		{"TCP, connecting outside", []string{"inet_wait_for_connect", "inet_stream_connect"}, 0, files(change(tf, func(f *kcdata.LinuxFile) { f.Op = kcdata.FileOpConnect })), []kcdata.LinuxSocket{tcp(4000, 5432, far4)}, nil, nil, Socket, "", false, 0, Elsewhere, Sure, File, ""},
		{"TCP, full queue", []string{"inet_wait_for_connect"}, 0, files(change(tf, func(f *kcdata.LinuxFile) { f.Op = kcdata.FileOpConnect })), conn(4000, 80), theEnds(listener(20, 80, 0)), nil, Socket, "listens 20!$", false, 0, "", Sure, After, ""},
		{"unix, full queue", inRoom, 0, files(change(tf, func(f *kcdata.LinuxFile) {
			f.Op, f.Flags = kcdata.FileOpConnect, still|kcdata.FileToWrite|kcdata.FilePeerKnown
		})), un, theEnds(ofRoom(20, kcdata.EndListens|kcdata.EndAccepts, 0)), nil,
			Socket, "listens 20!$", false, 0, "", Sure, After, ""},
		{"unix, full queue, being accepted", inRoom, 0, files(change(tf, func(f *kcdata.LinuxFile) {
			f.Op, f.Flags = kcdata.FileOpConnect, still|kcdata.FileToWrite|kcdata.FilePeerKnown
		})), un, theEnds(ofRoom(20, kcdata.EndListens|kcdata.EndAccepts, 0)),
			func(w *world, th *kcdata.Thread) { w.s.Tasks[1].Threads[0].Files = files(streamFile(900, 0, 0)) }, Socket, "listens 20!", false, 0, "", Sure, After, ""},
		{"unix, connecting, nobody found", inRoom, 0, files(change(tf, func(f *kcdata.LinuxFile) {
			f.Op, f.Flags = kcdata.FileOpConnect, still|kcdata.FileToWrite|kcdata.FilePeerKnown
		})), un, nil, nil, Socket, "", false, 0, NotFound, Sure, File, ""},
		{"datagrams, no room", inRoom, 0, files(toSend(0)), dgram, theEnds(ofRoom(20, kcdata.EndPeer, 50), peer(21, 0)), nil, Socket, "other_end 20!$", false, 0, "", Sure, After, ""},
		{"datagrams, no room, being read", inRoom, 0, files(toSend(0)), dgram, theEnds(ofRoom(20, kcdata.EndPeer, 50)),
			func(w *world, th *kcdata.Thread) { w.s.Tasks[1].Threads[0].Files = files(streamFile(900, 0, 0)) }, Socket, "other_end 20!", false, 0, "", Sure, After, ""},
		{"datagrams, no room at another than the peer", inRoom, 0, files(toSend(600)), dgram, theEnds(peer(21, 0), ofRoom(20, kcdata.EndPeer, 50)), nil, Socket, "other_end 20!$", false, 0, "", Sure, After, ""},
		{"datagrams, it had gone on", inRoom, 0, files(change(toSend(0), func(f *kcdata.LinuxFile) { f.Flags = f.Flags&^still | kcdata.FileMoved })), dgram, theEnds(ofRoom(20, kcdata.EndPeer, 50)), nil, Socket, "", false, 0, NotLooked, Sure, File, "gone on"},
		{"half-closed", inTCP, 0, files(tf), []kcdata.LinuxSocket{func() kcdata.LinuxSocket { s := conn(4000, 80)[0]; s.Flags = kcdata.SocketShutOut; return s }()}, theEnds(far(20, 3)), nil, Socket, "other_end 20!$", false, 0, "", Sure, After, ""},
		{"no room", []string{"sk_stream_wait_memory"}, 0, files(change(tf, func(f *kcdata.LinuxFile) { f.Flags, f.Op = still|kcdata.FileToWrite, kcdata.FileOpWrite })), conn(80, 4000), theEnds(far(20, 9), listener(10, 80, 0)), nil,
			Socket, "other_end 20!$", false, 0, "", Sure, After, ""},
		{"UDP from anybody", inTCP, 0, files(tf), sock(func(s *kcdata.LinuxSocket) { s.Family, s.Kind, s.State = afInet, sockDgram, 7 }), nil, nil, Socket, "", false, 0, Serves, Sure, File, ""},
		{"netlink", []string{"__skb_wait_for_more_packets", "netlink_recvmsg"}, 0, files(tf), sock(func(s *kcdata.LinuxSocket) { s.Family = afNetlink }), nil, nil, Netlink, "", false, 0, Serves, Sure, File, ""},
		{"vsock", []string{"vsock_stream_recvmsg"}, 0, files(tf), sock(func(s *kcdata.LinuxSocket) { s.Family = afVsock }), nil, nil, Socket, "", false, 0, Elsewhere, Sure, File, ""},
	} {
		got := c.run(t)
		if c.says == Elsewhere && c.kind == Socket && c.socks[0].Family == afInet && got.File.Remote != "192.0.2.7:5432" {
			t.Errorf("%s: remote %q", c.name, got.File.Remote)
		}
	}
}
