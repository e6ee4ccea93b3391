package ends

import (
	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/kcdata"
)

// Bounds of what is looked for. More is said (kcdata.FilesTooWanted).
const (
	MaxWanted  = 1 << 15 // objects
	MaxThreads = 1 << 16
)

// FileID is a file by inode and file system (s_dev: major<<32 | minor).
type FileID struct{ Dev, Inode uint64 }

// Process is a process of the capture.
type Process struct {
	Start  uint64 // start_boottime, ns
	Mounts uint32 // inode of its mount namespace; 0: not known
	Waits  bool   // a thread of it waits for a file
}

// Wants is what a capture's threads wait for.
type Wants struct {
	Ends      []bpf.WantedEnd
	Threads   []bpf.WantedThread
	TooMany   bool
	Locks     map[FileID]bool // files at which threads wait for locks
	Devices   map[uint64]bool // of the file systems that threads wait for
	Processes map[uint32]Process
	have      map[thing]bool
}

// Empty reports whether there is nothing to look for.
func (w *Wants) Empty() bool { return len(w.Ends) == 0 && len(w.Threads) == 0 }

// Wanted reads the bytes of a capture: the open files at which threads wait, and the threads
// that may wait in a file system or a page fault without a descriptor. It changes nothing.
func Wanted(raw *capture.Raw) *Wants {
	w := &Wants{Locks: map[FileID]bool{}, Devices: map[uint64]bool{}, Processes: map[uint32]Process{}, have: map[thing]bool{}}
	for _, p := range raw.Recorded {
		if p.Hidden {
			continue // from /proc: without records of files
		}
		r := reading{wants: w}
		for it, err := range kcdata.NewEditor(p.Pieces...).Items() {
			if err != nil {
				break // collation leaves the task out, and says so
			}
			r.item(it)
		}
		r.endTask()
	}
	return w
}

func (w *Wants) thread(th *kcdata.LinuxThread, sends uint64) {
	if len(w.Threads) >= MaxThreads {
		w.TooMany = true
		return
	}
	w.Threads = append(w.Threads, bpf.WantedThread{Tid: th.Tid, Start: th.StartBoottime, Switches: th.Nvcsw + th.Nivcsw, Sends: sends})
}

// thing is what makes two wanted ends the same.
type thing struct {
	object, peer uint64
	kind         uint32
	lock         bool
}

// end wants an object once.
func (w *Wants) end(e bpf.WantedEnd) {
	at := thing{e.Object, e.Peer, e.Kind, e.Lock}
	switch {
	case w.have[at]:
	case len(w.Ends) >= MaxWanted:
		w.TooMany = true
	default:
		w.have[at], w.Ends = true, append(w.Ends, e)
	}
}

// file wants what one open file leads to.
func (w *Wants) file(f *kcdata.LinuxFile, s *kcdata.LinuxSocket) {
	if f.Flags&(kcdata.FileClosed|kcdata.FileUnread) != 0 {
		return
	}
	switch f.Op {
	case kcdata.FileOpFlock, kcdata.FileOpPOSIX, kcdata.FileOpOFD:
		w.Devices[f.Dev] = true
		w.Locks[FileID{f.Dev, f.Inode}] = true
		w.end(bpf.WantedEnd{Kind: f.Kind, Object: f.Object, Inode: f.Inode, Dev: f.Dev, Lock: true})
		return
	}
	switch f.Kind {
	case kcdata.FileOther, kcdata.FileRegular, kcdata.FileDirectory, kcdata.FileBlock, kcdata.FileChar:
		w.Devices[f.Dev] = true
	case kcdata.FileEpoll, kcdata.FilePidfd, kcdata.FileSignalfd, kcdata.FileIOUring: // nobody has another end of these
	default:
		w.object(f, s)
	}
}

func (w *Wants) object(f *kcdata.LinuxFile, s *kcdata.LinuxSocket) {
	if f.Object == 0 {
		return
	}
	e := bpf.WantedEnd{Kind: f.Kind, Object: f.Object, Peer: f.Peer, Inode: f.Inode, Dev: f.Dev}
	if s != nil {
		e.Family, e.Sort, e.NetNS, e.LocalPort, e.PeerPort = s.Family, s.Kind, s.NetNS, s.LocalPort, s.PeerPort
		e.Local, e.Remote = s.Local, s.Remote
	}
	w.end(e)
}
