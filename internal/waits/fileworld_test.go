package waits

import (
	"fmt"
	"strings"

	"stackshot/kcdata"
)

var (
	inSocket = []string{"unix_stream_read_generic", "sock_recvmsg"}
	inRoom   = []string{"unix_wait_for_peer", "unix_dgram_sendmsg"}
	inTCP    = []string{"sk_wait_data", "tcp_recvmsg"}
	inPoll   = []string{"do_poll", "do_sys_poll"}
	inEpoll  = []string{"ep_poll", "do_epoll_wait"}
	inFlock  = []string{"locks_lock_inode_wait", "do_flock"}
	inTTY    = []string{"n_tty_write", "file_tty_write"}
	inFUSE   = []string{"request_wait_answer", "__fuse_simple_request"}
)

// still is a file of a thread that had not run when its other end was looked for.
const still = kcdata.FileStill

// pipeFile is an empty pipe that a thread reads, with one writer.
func pipeFile(object uint64, flags uint32) kcdata.LinuxFile {
	return kcdata.LinuxFile{
		Flags: still | kcdata.FileToRead | kcdata.FileEmpty | flags, Op: kcdata.FileOpRead, Kind: kcdata.FilePipe,
		Object: object, File: object + 1, Readers: 1, Writers: 1,
	}
}

// fullPipe is a full pipe that a thread writes.
func fullPipe(object uint64) kcdata.LinuxFile {
	return kcdata.LinuxFile{
		Flags: still | kcdata.FileToWrite | kcdata.FileFull, Op: kcdata.FileOpWrite, Kind: kcdata.FilePipe,
		Object: object, File: object + 2, Readers: 1, Writers: 1, Bytes: 65536,
	}
}

func streamFile(object, peer uint64, flags uint32) kcdata.LinuxFile {
	return kcdata.LinuxFile{
		Flags: still | kcdata.FileToRead | kcdata.FilePeerKnown | flags, Op: kcdata.FileOpRead, Kind: kcdata.FileSocket, Fd: 3,
		Object: object, Peer: peer, File: object + 1,
	}
}

func unixSocket() kcdata.LinuxSocket {
	return kcdata.LinuxSocket{Family: afUnix, Kind: sockStream, State: tcpEstablished, Fd: 3}
}

// unixClient is a socket whose other end was accepted.
func unixClient() kcdata.LinuxSocket {
	s := unixSocket()
	s.Flags = kcdata.SocketPeerNamed
	return s
}

// unixServer is a socket that was accepted.
func unixServer() kcdata.LinuxSocket {
	s := unixSocket()
	s.Flags = kcdata.SocketNamed
	return s
}

// tcp is a connection of 10.0.0.1 with another address.
func tcp(local, remote uint16, to [4]byte) kcdata.LinuxSocket {
	s := kcdata.LinuxSocket{Family: afInet, Kind: sockStream, State: tcpEstablished, Fd: 3, LocalPort: local, PeerPort: remote, NetNS: 5}
	copy(s.Local[:], []byte{10, 0, 0, 1})
	copy(s.Remote[:], to[:])
	return s
}

// end is a descriptor of tgid.
func end(tgid uint32, of uint64, flags uint32) kcdata.LinuxEnd {
	return kcdata.LinuxEnd{Tgid: tgid, Start: start(tgid), Of: of, Object: of + 100, File: of + uint64(tgid)*1000, Flags: flags, Refs: 1}
}

// lockEnd is one by which tgid has a lock.
func lockEnd(tgid uint32, of, file uint64, kind uint32) kcdata.LinuxEnd {
	e := end(tgid, of, kcdata.EndLocks)
	e.Object, e.File, e.LockKind = of, file, kind
	return e
}

// whole writes owners as "relation tid", with "!" behind one that the file has, "$" behind one that
// owes, "?" behind one that is no process.
func whole(w *Wait) string {
	var out []string
	for _, o := range w.Owners {
		s := fmt.Sprintf("%s %d", o.Relation, o.Pid)
		for _, m := range []struct {
			when bool
			mark string
		}{{o.Thread != nil, "!"}, {o.Owes, "$"}, {!o.Whole, "?"}} {
			if m.when {
				s += m.mark
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// says is what a wait's file says; "none" without a file.
func says(w *Wait) FileSays {
	if w.File == nil {
		return "none"
	}
	return w.File.Says
}
