package ends

import (
	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/kcdata"
)

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
	case count > kcdata.MaxFilesOfThread:
	case elem == kcdata.TypeLinuxFile && r.files == nil && size >= kcdata.SizeOf(&kcdata.LinuxFile{}):
		r.files = kcdata.Elements[kcdata.LinuxFile](it)
	case elem == kcdata.TypeLinuxSocket && r.sockets == nil && size >= kcdata.SizeOf(&kcdata.LinuxSocket{}):
		r.sockets = kcdata.Elements[kcdata.LinuxSocket](it)
	}
}

// endThread wants what the thread waits for.
func (r *reading) endThread() {
	th := r.thread
	if th == nil || th.Flags&kcdata.PFKthread != 0 || th.Present&kcdata.ThreadIsSelf != 0 {
		return
	}
	if th.Tid == th.Tgid {
		r.leader(th)
	}
	sleeps := th.State&(kcdata.StateInterruptible|kcdata.StateUninterruptible) != 0
	blind := sleeps && (th.State&kcdata.StateUninterruptible != 0 || len(r.files) == 0 && r.call != nil && r.call.Nr < 0)
	if len(r.files) == 0 && !blind {
		return
	}
	r.tgid, r.waits = th.Tgid, true
	r.wants.thread(th, r.sends())
	if blind { // it may wait for the server of a userfaultfd, also for a page that a call copies; those of FUSE are found in any case
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

// sends is the unix socket by which the thread may wait for room in the queue of one that its
// own does not lead to; 0: there is none. Who waits for room between two that are connected
// waits at its own socket.
func (r *reading) sends() uint64 {
	if len(r.files) != 1 || len(r.sockets) != 1 || r.sockets[0].Family != unix.AF_UNIX {
		return 0
	}
	f, s := &r.files[0], &r.sockets[0]
	if f.Op == kcdata.FileOpConnect || f.Op == kcdata.FileOpWrite && s.Kind == unix.SOCK_DGRAM {
		return f.Object
	}
	return 0
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
