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

<<<<<<< HEAD
// reading is one part of a task. A field is set by the first sound record of its kind.
type reading struct {
	wants   *Wants
	task    *kcdata.LinuxTask
	mounts  uint32
	waits   bool
	tgid    uint32
	inside  bool // of a thread
	thread  *kcdata.LinuxThread
	call    *kcdata.LinuxSyscall
	files   []kcdata.LinuxFile
	sockets []kcdata.LinuxSocket
}

func (r *reading) item(it kcdata.Item) {
	switch {
	case it.Type == kcdata.TypeContainerBegin && it.ContainerType() == kcdata.TypeThread:
		r.inside, r.thread, r.call, r.files, r.sockets = true, nil, nil, nil, nil
	case it.Type == kcdata.TypeContainerEnd && r.inside:
		r.endThread()
		r.inside = false
	case it.Type == kcdata.TypeLinuxTask && !r.inside:
		first(&r.task, it)
	case it.Type == kcdata.TypeLinuxTaskNS && !r.inside && r.mounts == 0:
		if ns, err := kcdata.Record[kcdata.LinuxTaskNS](it); err == nil {
			r.mounts = ns.Mnt
		}
	case !r.inside:
	case it.Type == kcdata.TypeLinuxThread:
		first(&r.thread, it)
	case it.Type == kcdata.TypeLinuxSyscall:
		first(&r.call, it)
	case it.Type == kcdata.TypeArray:
		r.array(it)
	}
}

// first takes a record that is whole, unless there is one already.
func first[T any](to **T, it kcdata.Item) {
	if v, err := kcdata.Record[T](it); err == nil && *to == nil && len(it.Data) >= kcdata.SizeOf(new(T)) {
		*to = &v
	}
}

func (r *reading) array(it kcdata.Item) {
	switch elem, size, count := it.Elem(); {
	case count > MaxFilesOfThread:
	case elem == kcdata.TypeLinuxFile && r.files == nil && size >= kcdata.SizeOf(&kcdata.LinuxFile{}):
		r.files = kcdata.Elements[kcdata.LinuxFile](it)
	case elem == kcdata.TypeLinuxSocket && r.sockets == nil && size >= kcdata.SizeOf(&kcdata.LinuxSocket{}):
		r.sockets = kcdata.Elements[kcdata.LinuxSocket](it)
	}
}

// MaxFilesOfThread bounds the open files of one thread; an engine writes 16.
const MaxFilesOfThread = 64

// Bits of task_struct.__state and flags.
const (
	stateInterruptible   = 1
	stateUninterruptible = 2
	flagKernelThread     = 0x00200000 // PF_KTHREAD
)

// endThread wants what the thread waits for.
func (r *reading) endThread() {
	th := r.thread
	if th == nil || th.Flags&flagKernelThread != 0 || th.Present&kcdata.ThreadIsSelf != 0 {
		return
	}
	if th.Tid == th.Tgid {
		r.leader(th)
	}
	sleeps := th.State&(stateInterruptible|stateUninterruptible) != 0
	// A page that a call copies may be missing, too: it sleeps in D then.
	blind := sleeps && (th.State&stateUninterruptible != 0 || len(r.files) == 0 && r.call != nil && r.call.Nr < 0)
	if len(r.files) == 0 && !blind {
		return
	}
	r.tgid, r.waits = th.Tgid, true
	r.wants.thread(th)
	if blind { // it may wait for the server of a userfaultfd; those of FUSE are found in any case
		r.wants.end(bpf.WantedEnd{Kind: kcdata.FileUserfaultfd})
	}
	sockets := r.sockets
	for i := range r.files {
		var s *kcdata.LinuxSocket
		if f := &r.files[i]; f.Kind == kcdata.FileSocket && len(sockets) > 0 && sockets[0].Fd == f.Fd {
			s, sockets = &sockets[0], sockets[1:]
		}
		r.wants.file(&r.files[i], s)
	}
}

func (r *reading) leader(th *kcdata.LinuxThread) {
	p := r.wants.Processes[th.Tgid]
	p.Start = th.StartBoottime
	r.wants.Processes[th.Tgid] = p
}

// endTask notes which mounts a process sees, and whether a thread of it waits. The parts of one
// task come together.
func (r *reading) endTask() {
	if r.task != nil && r.mounts != 0 {
		p := r.wants.Processes[r.task.Tgid]
		p.Mounts = r.mounts
		r.wants.Processes[r.task.Tgid] = p
	}
	if r.waits {
		p := r.wants.Processes[r.tgid]
		p.Waits = true
		r.wants.Processes[r.tgid] = p
	}
}

=======
>>>>>>> e-look
func (w *Wants) thread(th *kcdata.LinuxThread) {
	if len(w.Threads) >= MaxThreads {
		w.TooMany = true
		return
	}
	w.Threads = append(w.Threads, bpf.WantedThread{Tid: th.Tid, Start: th.StartBoottime, Switches: th.Nvcsw + th.Nivcsw})
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
