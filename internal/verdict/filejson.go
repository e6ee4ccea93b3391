package verdict

import (
	"fmt"

	"stackshot/internal/show"
	"stackshot/internal/waits"
)

// fileKinds and fileOps are the stable names of LinuxFile.Kind and Op.
var (
	fileKinds = []string{
		"other", "regular", "directory", "block", "char", "pipe", "fifo", "socket", "terminal", "pt_master", "epoll", "eventfd",
		"timerfd", "signalfd", "pidfd", "inotify", "fanotify", "userfaultfd", "fuse", "io_uring",
	}
	fileOps = []string{
		"other", "read", "write", "accept", "connect", "poll", "epoll", "flock", "posix_lock", "ofd_lock", "sync", "ioctl", "open", "close",
	}
)

// nameOf is the stable name of a number; the number itself, if this version has none.
func nameOf(names []string, n uint32) string {
	if n < uint32(len(names)) {
		return names[n]
	}
	return fmt.Sprint(n)
}

// FileJSON is the open file that a thread waits at; nil: none.
func FileJSON(x *waits.OpenFile) show.Object {
	if x == nil || x.File == nil {
		return nil
	}
	f := x.File
	o := show.Object{
		{"kind", nameOf(fileKinds, f.Kind)}, {"op", nameOf(fileOps, f.Op)}, {"fd", descriptor(f.Fd)}, {"of", x.Of}, {"others", show.Known(x.Others)},
		{"says", show.Known(Word(x.Says))}, {"remote", show.Known(words(x.Remote))}, {"unread", show.Known(x.Unread)},
		{"inode", show.Known(f.Inode)}, {"dev", device(f.Dev)}, {"device", show.Known(words(x.Device))},
	}
	if s := x.Socket; s != nil {
		o = append(o, [2]any{"socket", show.Object{
			{"family", s.Family}, {"type", s.Kind}, {"local_port", show.Known(s.LocalPort)}, {"peer_port", show.Known(s.PeerPort)},
			{"bytes_in", s.BytesIn}, {"bytes_out", s.BytesOut},
		}})
	}
	if m := x.Mount; m != nil {
		o = append(o, [2]any{"mount", show.Object{
			{"point", show.Known(field(m.Point[:]))}, {"type", show.Known(field(m.FSType[:]))}, {"source", show.Known(field(m.Source[:]))},
		}})
	}
	return o
}

// descriptor is the number of one; nil: the wait has none.
func descriptor(fd int32) *int32 {
	if fd < 0 {
		return nil
	}
	return &fd
}

// device is a device's number as people write it; nil if it is not known.
func device(dev uint64) *string {
	if dev == 0 {
		return nil
	}
	return show.Known(fmt.Sprintf("%d:%d", dev>>32, uint32(dev)))
}
