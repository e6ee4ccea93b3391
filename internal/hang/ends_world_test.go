package hang

import (
	"stackshot/internal/model"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// process is t as an owner.
func process(t *kcdata.Task, r waits.Relation, owes bool) waits.Owner {
	o := owner(t, t.Threads[0], r)
	o.Whole, o.Owes = true, owes
	return o
}

// at says at which file a wait is.
func at(x *waits.Wait, kind, op, flags uint32) *waits.OpenFile {
	x.File = &waits.OpenFile{File: &kcdata.LinuxFile{Kind: kind, Op: op, Flags: flags, Fd: 5, Inode: 4711, Dev: 8<<32 | 2}, Of: 1}
	x.Evidence = waits.After
	return x.File
}

// single is a process with one thread.
func (w *world) single(pid uint64, name string) *kcdata.Task {
	t := w.task(pid, name)
	thread(t, pid, name)
	return t
}

// inState puts a thread into a state before it waits.
func inState(t *kcdata.Task, state uint32) *kcdata.Thread {
	t.Threads[0].Linux.State = state
	return t.Threads[0]
}

// ends: a request cycle over pipe and socket; a stalled FUSE server with its victims in D; a
// stopped holder of a flock; a busy server; and threads that are at rest. The verdict is waitgraph's.
func ends() *world {
	w := newWorld()
	client, db := w.single(100, "client"), w.single(7, "db")
	helper := thread(db, 8, "helper")
	db.Threads[0].NS = []kcdata.LinuxThreadNS{{Inode: 4026532201, Tid: 1}}
	x := w.wait(client, client.Threads[0], waits.Socket, 0xffff888010, 30, process(db, waits.OtherEnd, true))
	at(x, kcdata.FileSocket, kcdata.FileOpRead, kcdata.FileToRead)
	x.File.Socket, x.File.Unread = &kcdata.LinuxSocket{Family: 1, Kind: 1, BytesOut: 64}, 64
	at(w.wait(db, db.Threads[0], waits.Pipe, 0xffff888020, 29, process(client, waits.OtherEnd, false)), kcdata.FilePipe, kcdata.FileOpRead, kcdata.FileToRead|kcdata.FileEmpty)
	w.wait(db, helper, waits.UserJoin, 0, 28, owner(db, db.Threads[0], waits.Joined))

	sshfs := w.single(911, "sshfs")
	remote := w.wait(sshfs, sshfs.Threads[0], waits.Socket, 0xffff888030, 60)
	at(remote, kcdata.FileSocket, kcdata.FileOpRead, kcdata.FileToRead)
	remote.File.Socket, remote.File.Says, remote.File.Remote = &kcdata.LinuxSocket{Family: 2, Kind: 1, LocalPort: 40000, PeerPort: 22}, waits.Elsewhere, "192.0.2.7:22"
	mount := &kcdata.LinuxMount{Dev: 45}
	copy(mount.Point[:], "/mnt/backup")
	copy(mount.FSType[:], "fuse.sshfs")
	copy(mount.Source[:], "backup@store:/srv")
	for i := range uint64(3) {
		ls := w.single(200+i, "ls")
		inState(ls, kcdata.StateUninterruptible)
		x := w.wait(ls, ls.Threads[0], waits.FUSE, 45, 55-i, process(sshfs, waits.Server, true))
		at(x, kcdata.FileRegular, kcdata.FileOpRead, 0).Mount = mount
	}

	holder := w.single(300, "cron")
	inState(holder, kcdata.StateStopped)
	w.wait(holder, holder.Threads[0], waits.Stopped, 0, 80)
	for i := range uint64(5) {
		job := w.single(301+i, "job")
		x := w.wait(job, job.Threads[0], waits.FileLock, 0xffff888040, 70-i, process(holder, waits.Holds, true))
		at(x, kcdata.FileRegular, kcdata.FileOpFlock, 0)
	}

	web := w.single(400, "web")
	thread(web, 401, "loop").Linux = kcdata.LinuxThread{Present: kcdata.ThreadHasOnCPU, OnCPU: 1}
	web.Threads[0].Linux = kcdata.LinuxThread{Present: kcdata.ThreadHasOnCPU, OnCPU: 1}
	curl := w.single(410, "curl")
	x = w.wait(curl, curl.Threads[0], waits.Poll, 0xffff888050, 9, process(web, waits.OtherEnd, true))
	at(x, kcdata.FileSocket, kcdata.FileOpPoll, kcdata.FileToRead|kcdata.FilePolled)
	x.File.Socket, x.File.Of, x.File.Others, x.File.Unread, x.Confidence = &kcdata.LinuxSocket{Family: 2, Kind: 1, LocalPort: 5000, PeerPort: 80}, 2, 1, 120, waits.Likely

	idle := w.single(500, "idle")
	x = w.wait(idle, idle.Threads[0], waits.Socket, 0xffff888060, 4000)
	at(x, kcdata.FileSocket, kcdata.FileOpAccept, kcdata.FileToRead).Says = waits.Serves
	x.File.Socket = &kcdata.LinuxSocket{Family: 10, Kind: 1, Flags: kcdata.SocketListens, LocalPort: 80}
	w.v = waitgraph.Judge(w.v.Waits, waitgraph.Options{})
	return w
}

// endsRedacted has numbers, and nothing else of the machine.
func endsRedacted() *world {
	w := ends()
	w.s.Machine.Redacted = 1
	for i, x := range w.v.Waits.All {
		if x.Resource.ID != 0 {
			x.Resource.ID &= 0xff
		}
		if x.File != nil {
			x.File.Remote = ""
			if s := x.File.Socket; s != nil {
				s.LocalPort, s.PeerPort = 0, 0
			}
			if m := x.File.Mount; m != nil {
				*m = kcdata.LinuxMount{Dev: m.Dev, FSType: m.FSType}
			}
		}
		w.v.Waits.All[i].State = model.StateOf(x.Thread)
	}
	return w
}
