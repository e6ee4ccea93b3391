package verdict

import (
	"encoding/json"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/model"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// program is a process with threads of these tids.
func program(name string, tids ...uint64) *kcdata.Task {
	t := &kcdata.Task{ID: tids[0], Name: name}
	for _, tid := range tids {
		t.Threads = append(t.Threads, &kcdata.Thread{ID: tid, Name: name})
	}
	return t
}

// whole is t as an owner.
func whole(t *kcdata.Task, r waits.Relation) waits.Owner {
	return waits.Owner{Task: t, Thread: t.Threads[0], Tid: uint32(t.ID), Pid: uint32(t.ID), Relation: r, Whole: true}
}

func owing(o waits.Owner) waits.Owner { o.Owes = true; return o }

// file lets the first thread of app wait at a file.
func file(kind waits.Kind, f kcdata.LinuxFile, id uint64, owners ...waits.Owner) *waits.Wait {
	t := program("app", 100)
	w := &waits.Wait{Task: t, Thread: t.Threads[0], Kind: kind, Owners: owners, Evidence: waits.After, Confidence: waits.Sure, File: &waits.OpenFile{File: &f, Of: 1}}
	if id != 0 {
		w.Resource = waits.Resource{Kind: kind, ID: id}
	}
	return w
}

func reads(kind uint32) kcdata.LinuxFile {
	return kcdata.LinuxFile{Kind: kind, Op: kcdata.FileOpRead, Flags: kcdata.FileToRead, Fd: 3}
}

func writesTo(kind uint32) kcdata.LinuxFile {
	return kcdata.LinuxFile{Kind: kind, Op: kcdata.FileOpWrite, Flags: kcdata.FileToWrite, Fd: 3}
}

func socket(w *waits.Wait, s kcdata.LinuxSocket) *waits.Wait { w.File.Socket = &s; return w }

func says(w *waits.Wait, s waits.FileSays) *waits.Wait { w.File.Says = s; return w }

func mountedAt(w *waits.Wait, point, kind, source string) *waits.Wait {
	m := &kcdata.LinuxMount{}
	copy(m.Point[:], point)
	copy(m.FSType[:], kind)
	copy(m.Source[:], source)
	w.File.Mount = m
	return w
}

// Each kind of file has its clause, with its owners and without.
func TestFilePhrases(t *testing.T) {
	db, redis, sshfs := program("db", 7), program("redis-server", 812, 813), program("sshfs", 911)
	redis.Threads[0].NS = []kcdata.LinuxThreadNS{{Inode: 1, Tid: 70}, {Inode: 2, Tid: 7}}
	unix, tcp := kcdata.LinuxSocket{Family: 1, Kind: 1}, kcdata.LinuxSocket{Family: 2, Kind: 1, LocalPort: 4000, PeerPort: 5432}
	flock := kcdata.LinuxFile{Kind: kcdata.FileRegular, Op: kcdata.FileOpFlock, Inode: 12}
	accept := kcdata.LinuxFile{Kind: kcdata.FileSocket, Op: kcdata.FileOpAccept, Flags: kcdata.FileToRead}
	many := reads(kcdata.FilePipe)
	many.Op, many.Flags = kcdata.FileOpPoll, many.Flags|kcdata.FilePolled
	polls := file(waits.Poll, many, 0x10, whole(db, waits.OtherEnd))
	polls.File.Of = 40
	several := file(waits.Poll, many, 0, whole(db, waits.OtherEnd), whole(sshfs, waits.OtherEnd))
	several.File.Of, several.AnyOwner = 2, true
	atRest := says(file(waits.Poll, many, 0x10), waits.Serves)
	atRest.File.Of = 40
	own := file(waits.Pipe, reads(kcdata.FilePipe), 0x10)
	own.Owners = []waits.Owner{whole(own.Task, waits.OtherEnd)}
	abroad := socket(says(file(waits.Socket, reads(kcdata.FileSocket), 0x20), waits.Elsewhere), tcp)
	abroad.File.Remote = "192.0.2.7:5432"
	connecting := socket(says(file(waits.Socket, kcdata.LinuxFile{Kind: kcdata.FileSocket, Op: kcdata.FileOpConnect, Flags: kcdata.FileToWrite}, 0x20), waits.Elsewhere), tcp)
	connecting.File.Remote = "192.0.2.7:5432"
	disk := mountedAt(file(waits.BlockIO, reads(kcdata.FileRegular), 0), "/", "ext4", "/dev/nvme0n1p2")
	disk.File.Device = "nvme0n1p2"
	nfs := mountedAt(says(file(waits.NFS, reads(kcdata.FileRegular), 0), waits.Elsewhere), "/home", "nfs4", "filer:/home")
	nfs.File.Remote = "filer"
	either := file(waits.Pipe, reads(kcdata.FilePipe), 0x10, whole(db, waits.OtherEnd), whole(redis, waits.OtherEnd), whole(sshfs, waits.OtherEnd))
	either.AnyOwner = true
	for _, c := range []struct {
		w    *waits.Wait
		want string
	}{
		{file(waits.Pipe, reads(kcdata.FilePipe), 0x10, whole(db, waits.OtherEnd)), "waits for bytes from the pipe 0x10 that db [7] writes"},
		{file(waits.Pipe, writesTo(kcdata.FilePipe), 0x10, whole(db, waits.OtherEnd)), "waits for room in the pipe 0x10 that db [7] reads"},
		{either, "waits for bytes from the pipe 0x10 that db [7], redis-server [812] (7 in its container) or 1 more write"},
		{says(file(waits.Pipe, reads(kcdata.FilePipe), 0x10), waits.NoEnd), "waits for bytes from the pipe 0x10, which has no writers"},
		{says(own, waits.OwnEnd), "waits for bytes from the pipe 0x10, whose other end only it itself has open"},
		{says(file(waits.Pipe, kcdata.LinuxFile{Kind: kcdata.FileFIFO, Op: kcdata.FileOpOpen, Fd: -1}, 0), waits.NotOpened), "waits for somebody to open the other side of a FIFO"},
		{says(file(waits.Pipe, reads(kcdata.FileFIFO), 0x10), waits.NotOpened), "waits for bytes from the FIFO 0x10, which nobody has opened on the other side"},
		{socket(file(waits.Socket, reads(kcdata.FileSocket), 0x20, owing(whole(redis, waits.OtherEnd))), unix), "waits for the answer of redis-server [812] (7 in its container) over the unix socket 0x20"},
		{socket(file(waits.Socket, reads(kcdata.FileSocket), 0x20, whole(redis, waits.OtherEnd)), unix), "waits for data from redis-server [812] (7 in its container) over the unix socket 0x20"},
		{socket(file(waits.Socket, writesTo(kcdata.FileSocket), 0x20, whole(db, waits.OtherEnd)), unix), "waits for db [7] to read what it sends to the unix socket 0x20"},
		{socket(file(waits.Socket, reads(kcdata.FileSocket), 0x20, owing(whole(db, waits.Listener))), tcp), "waits for db [7] to accept its connection (the TCP connection from port 4000 to port 5432)"},
		{connecting, "waits for the TCP connection to 192.0.2.7:5432 to be accepted"},
		{abroad, "waits for data from the TCP connection to 192.0.2.7:5432"},
		{says(socket(file(waits.Socket, reads(kcdata.FileSocket), 0x20), unix), waits.NoEnd), "waits for data from the unix socket 0x20, whose other side is gone"},
		{says(socket(file(waits.Socket, accept, 0x20), kcdata.LinuxSocket{Family: 10, Kind: 1, Flags: kcdata.SocketListens, LocalPort: 80}), waits.Serves), "waits for somebody to connect to TCP port 80"},
		{says(socket(file(waits.Socket, reads(kcdata.FileSocket), 0x20), unix), waits.Serves), "waits for the next request at the unix socket 0x20"},
		{atRest, "waits for an event of one of 40 descriptors"},
		{says(file(waits.Terminal, reads(kcdata.FileTerminal), 0x30), waits.Serves), "waits for input from the terminal 0x30"},
		{says(file(waits.Descriptor, reads(kcdata.FileFUSE), 0x30), waits.Serves), "waits for the next request at the FUSE device 0x30"},
		{several, "waits for an event of one of 2 descriptors from db [7] or sshfs [911]"},
		{polls, "waits for one of 40 descriptors, among them bytes from the pipe 0x10 that db [7] writes"},
		{file(waits.Terminal, reads(kcdata.FileTerminal), 0x30, whole(db, waits.OtherEnd)), "waits for input from the terminal 0x30, of which db [7] has the other end"},
		{says(file(waits.Descriptor, reads(kcdata.FileEventfd), 0x30), waits.NotFound), "waits for an event of the eventfd 0x30, whose other end no process seen here has"},
		{says(file(waits.Descriptor, reads(kcdata.FileEventfd), 0), waits.NotLooked), "waits for an event of an eventfd, whose other end was not looked for"},
		{file(waits.FileLock, flock, 0x40, whole(db, waits.Holds)), "waits for the file lock 0x40 (flock) on inode 12 that db [7] holds"},
		{mountedAt(file(waits.FileLock, flock, 0x40, whole(db, waits.Holds)), "/srv", "xfs", "/dev/vdb"), "waits for the file lock 0x40 (flock) on inode 12 of /srv that db [7] holds"},
		{mountedAt(file(waits.FUSE, reads(kcdata.FileRegular), 0x2d, whole(sshfs, waits.Server)), "/mnt/backup", "fuse.sshfs", "srv:/"), "waits for /mnt/backup (fuse.sshfs, srv:/, served by sshfs [911])"},
		{file(waits.FUSE, kcdata.LinuxFile{Fd: -1}, 0x2d, whole(sshfs, waits.Server)), "waits for its file system (served by sshfs [911])"},
		{nfs, "waits for /home (nfs4, filer:/home)"},
		{disk, "waits for / (ext4, /dev/nvme0n1p2)"},
		{file(waits.Userfault, kcdata.LinuxFile{Kind: kcdata.FileUserfaultfd, Fd: -1}, 0x50, whole(db, waits.Pager)), "waits for a page that db [7] has to serve (the userfaultfd 0x50)"},
		{file(waits.Mutex, reads(kcdata.FilePipe), 0x10, has(db, 0, waits.Holds)), "waits for the kernel mutex 0x10 that db [7] holds"},
	} {
		if got := Phrase(c.w, false); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Redacted, no address, port or path is said, whatever the file has.
func TestRedactedFiles(t *testing.T) {
	sshfs := program("sshfs", 911)
	abroad := socket(file(waits.Socket, reads(kcdata.FileSocket), 3), kcdata.LinuxSocket{Family: 2, Kind: 1, LocalPort: 4000, PeerPort: 5432})
	abroad.File.Remote = "192.0.2.7:5432"
	for _, c := range []struct {
		w    *waits.Wait
		want string
	}{
		{abroad, "waits for data from the TCP socket number 3"},
		{mountedAt(file(waits.FUSE, reads(kcdata.FileRegular), 4, whole(sshfs, waits.Server)), "/mnt/backup", "fuse.sshfs", "srv:/"), "waits for its file system (fuse.sshfs, served by sshfs [911])"},
	} {
		if got := Phrase(c.w, true); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A culprit of a process is named once, as its thread; the goldens of hang have the sentences.
func TestProcessOwners(t *testing.T) {
	b := program("b", 2, 3)
	first := file(waits.Socket, reads(kcdata.FileSocket), 0x10, owing(whole(b, waits.OtherEnd)))
	c := &waitgraph.Culprit{Owner: has(b, 1, waits.OtherEnd), Reason: waitgraph.Running, Victims: []*waits.Wait{first}}
	c.Owner.Whole = true
	x := For(&kcdata.Snapshot{}, &waitgraph.Verdict{Waits: &waits.Waits{OneInstant: true}})
	if got, want := x.Title(Finding{Culprit: c}), "b [2] tid 3 keeps 1 thread waiting"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	gone, here := waits.Owner{Tid: 9, Pid: 9, Whole: true}, whole(b, "")
	if a, b := Owner(&gone), Owner(&here); a != "process 9 (not in this file)" || b != "process b [2]" {
		t.Error(a, b)
	}
}

// docs/hang-json.md and report-json.md have the names of all kinds of files and of calls.
func TestFileNamesAreDocumented(t *testing.T) {
	var names []string
	for k := range uint32(kcdata.FileIOUring + 2) { // and one of a later version
		names = append(names, model.FileKind(k), model.FileOp(min(k, kcdata.FileOpClose+1)))
	}
	for _, page := range []string{"../../docs/hang-json.md", "../../docs/report-json.md"} {
		golden.Documented(t, page, 30, names)
	}
}

// No text of the machine reaches a sentence or JSON raw, or takes more than its bound (V2).
func TestHostileFiles(t *testing.T) {
	evil := strings.Repeat("\x1b[2J\u202e", 60)
	w := mountedAt(file(waits.FUSE, reads(kcdata.FileRegular), 0, whole(program(evil, 9), waits.Server)), evil, evil, evil)
	w.File.Remote, w.File.Device, w.File.Says, w.File.Of = evil, evil, waits.FileSays(evil), 1<<30
	w.File.Socket = &kcdata.LinuxSocket{Family: 2}
	for _, kind := range []waits.Kind{waits.FUSE, waits.Socket, waits.Poll, waits.FileLock, waits.NFS} {
		for k := range uint32(30) {
			w.Kind, w.File.File.Kind, w.File.File.Op = kind, k, k
			for _, owners := range [][]waits.Owner{nil, w.Owners[:1]} {
				y := *w
				y.Owners = owners
				js, err := json.Marshal(WaitJSON(&y))
				if err != nil {
					t.Fatal(err)
				}
				if got := Phrase(&y, false); len(got) > 1200 || strings.ContainsAny(got+string(js), "\x1b\u202e") {
					t.Fatalf("%d bytes: %q", len(got), got)
				}
			}
		}
	}
}
