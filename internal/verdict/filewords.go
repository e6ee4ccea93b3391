package verdict

import (
	"fmt"
	"strings"

	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// fileWhat are the words for what is waited for at an open file.
type fileWhat struct {
	want   string // "bytes"
	from   string // " from the pipe 0x10"
	at     string // " the unix socket 0x10"
	writes bool   // it waits for room
}

// fileNouns name what a file is, with an article for one that has no number.
var fileNouns = map[uint32][2]string{
	kcdata.FileRegular: {"a ", "file"}, kcdata.FileDirectory: {"a ", "directory"}, kcdata.FileBlock: {"a ", "block device"},
	kcdata.FileChar: {"a ", "character device"}, kcdata.FilePipe: {"a ", "pipe"}, kcdata.FileFIFO: {"a ", "FIFO"},
	kcdata.FileSocket: {"a ", "socket"}, kcdata.FileTerminal: {"a ", "terminal"}, kcdata.FilePTMaster: {"a ", "terminal's master side"},
	kcdata.FileEpoll: {"an ", "epoll"}, kcdata.FileEventfd: {"an ", "eventfd"}, kcdata.FileTimerfd: {"a ", "timerfd"},
	kcdata.FileSignalfd: {"a ", "signalfd"}, kcdata.FilePidfd: {"a ", "pidfd"}, kcdata.FileInotify: {"an ", "inotify group"},
	kcdata.FileFanotify: {"a ", "fanotify group"}, kcdata.FileUserfaultfd: {"a ", "userfaultfd"}, kcdata.FileFUSE: {"a ", "FUSE device"},
	kcdata.FileIOUring: {"an ", "io_uring"},
}

// families are the sockets' (include/linux/socket.h).
var families = map[uint16]string{1: "unix socket", 2: "connection", 10: "connection", 16: "netlink socket", 17: "packet socket", 40: "vsock"}

// fileWords finds the words for w's file.
func fileWords(w *waits.Wait, redacted bool) fileWhat {
	f := w.File.File
	x := fileWhat{at: " " + fileName(w, redacted), writes: f.Flags&(kcdata.FileToWrite|kcdata.FileToRead) == kcdata.FileToWrite}
	x.want, x.from = "an event", " of"+x.at
	switch {
	case w.Kind == waits.FileLock || f.Op == kcdata.FileOpFlock || f.Op == kcdata.FileOpPOSIX || f.Op == kcdata.FileOpOFD:
		x.want, x.from = lockName(w, redacted), ""
	case w.Kind.AtFileSystem():
		x.want, x.from = mounted(w, "", redacted), ""
	case f.Op == kcdata.FileOpOpen:
		x.want, x.from = "somebody to open the other side of", x.at
	case f.Op == kcdata.FileOpAccept:
		x.want, x.from = "somebody to connect to", x.at
	case f.Op == kcdata.FileOpConnect && w.File.Remote != "":
		x.want, x.from = strings.TrimSpace(x.at), " to be accepted"
	case f.Op == kcdata.FileOpConnect:
		x.want, x.from = "its connection to be accepted at", x.at
	case x.writes:
		x.want, x.from = "room in", x.at
	case f.Kind == kcdata.FilePipe || f.Kind == kcdata.FileFIFO || f.Kind == kcdata.FileChar:
		x.want, x.from = "bytes from", x.at
	case f.Kind == kcdata.FileSocket:
		x.want, x.from = "data from", x.at
	case f.Kind == kcdata.FileTerminal:
		x.want, x.from = "input from", x.at
	case f.Kind == kcdata.FilePTMaster:
		x.want, x.from = "output at", x.at
	case f.Kind == kcdata.FileSignalfd:
		x.want, x.from = "a signal", " at"+x.at
	case f.Kind == kcdata.FilePidfd:
		x.want, x.from = "the end of a process", ""
	case f.Kind == kcdata.FileTimerfd:
		x.want, x.from = "the time of", x.at
	}
	if w.File.Says == waits.Serves && x.want == "data from" || f.Kind == kcdata.FileFUSE {
		x.want, x.from = "the next request at", x.at
	}
	return x
}

// fileName names the file: "the pipe 0x10", "the connection to 192.0.2.7:5432".
func fileName(w *waits.Wait, redacted bool) string {
	f := w.File.File
	noun, ok := fileNouns[f.Kind]
	if !ok {
		noun = [2]string{"a ", "file"}
	}
	if s := w.File.Socket; s != nil {
		if family := families[s.Family]; family != "" {
			noun[1] = family
		}
		if noun[1] == "connection" {
			return connection(w, s, redacted)
		}
	}
	return numbered(noun, w.Resource.ID, redacted)
}

func numbered(noun [2]string, id uint64, redacted bool) string {
	switch {
	case id == 0:
		return noun[0] + noun[1]
	case redacted:
		return fmt.Sprintf("the %s number %d", noun[1], id)
	}
	return fmt.Sprintf("the %s %#x", noun[1], id)
}

// connection names an internet socket by its port, or by whom it leads to.
func connection(w *waits.Wait, s *kcdata.LinuxSocket, redacted bool) string {
	kind := "TCP"
	if s.Kind == 2 { // SOCK_DGRAM
		kind = "UDP"
	}
	switch {
	case redacted:
		return numbered([2]string{"a ", kind + " socket"}, w.Resource.ID, true)
	case w.File.Remote != "":
		return "the " + kind + " connection to " + words(w.File.Remote)
	case s.Flags&kcdata.SocketListens != 0 && s.LocalPort != 0:
		return fmt.Sprintf("%s port %d", kind, s.LocalPort)
	case s.PeerPort != 0:
		return fmt.Sprintf("the %s connection from port %d to port %d", kind, s.LocalPort, s.PeerPort)
	case s.LocalPort != 0:
		return fmt.Sprintf("the %s socket of port %d", kind, s.LocalPort)
	}
	return "a " + kind + " socket"
}

// lockName names a lock of a file.
func lockName(w *waits.Wait, redacted bool) string {
	kind := map[uint32]string{kcdata.FileOpFlock: "flock", kcdata.FileOpPOSIX: "fcntl", kcdata.FileOpOFD: "fcntl, OFD"}[w.File.File.Op]
	s := numbered([2]string{"a ", "file lock"}, w.Resource.ID, redacted)
	if kind != "" {
		s += " (" + kind + ")"
	}
	s += fmt.Sprintf(" on inode %d", w.File.File.Inode)
	if m := w.File.Mount; m != nil && !redacted && m.Point[0] != 0 {
		s += " of " + field(m.Point[:])
	}
	return s
}
