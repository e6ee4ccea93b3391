package ends

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// Without BPF, /proc tells who has the same pipes and sockets open, by their inodes. It does not
// tell the peer of a unix socket, nor whose eventfd, terminal or FUSE device is whose.

// Bounds of what is read of one process.
const (
	maxFdList = 4 << 20 // bytes of directory entries
	fdPortion = 256     // descriptors that one helper reads at a time
)

// scanned is what /proc told.
type scanned struct {
	ends      []kcdata.LinuxEnd
	waiters   map[capture.WaiterID]capture.Waiter
	looked    uint64
	processes uint32
	unsettled uint32
	timeUp    bool
	tooMany   bool
	ns        uint64
	hung      found
}

// mostEnds bounds the ends that are kept.
const mostEnds = 100_000

func (r *Result) scanned(s *scanned) {
	t := &r.Taken
	t.Sources |= kcdata.FilesHasProc
	t.Looked, t.Processes, t.Unsettled, t.PassNs = s.looked, s.processes, s.unsettled, s.ns
	if s.timeUp {
		t.Flags |= kcdata.FilesTimeUp
	}
	if s.tooMany {
		t.Flags |= kcdata.FilesTooMany
	}
	s.hung(r)
	r.Ends.Ends, r.Waiters = s.ends, s.waiters
}

// link is what a link in /proc/PID/fd is to: a kind and the number in it.
type link struct {
	kind  uint32
	inode uint64
}

// scan looks through all descriptors that /proc shows, and then whether the threads still wait.
func (l *Looker) scan(w *Wants, until time.Time) *scanned {
	began := time.Now()
	s := &scanned{waiters: map[capture.WaiterID]capture.Waiter{}, hung: nothing(nil)}
	want := map[link][]*bpf.WantedEnd{}
	for i := range w.Ends {
		if e := &w.Ends[i]; (e.Kind == kcdata.FilePipe || e.Kind == kcdata.FileSocket) && !e.Lock && e.Inode != 0 {
			at := link{e.Kind, e.Inode}
			want[at] = append(want[at], e)
		}
	}
	tgids, err := l.Proc.Tasks()
	if err != nil {
		s.hung = nothing(err)
	}
	half := began.Add(time.Until(until) / 2) // the rest is for the threads
	for _, tgid := range tgids {
		if len(want) == 0 {
			break
		}
		if s.timeUp = !time.Now().Before(half); s.timeUp {
			break
		}
		l.process(s, w, tgid, want, half)
	}
	l.waiters(s, w, until)
	s.ns = uint64(time.Since(began))
	return s
}

// process looks through the descriptors of one process.
func (l *Looker) process(s *scanned, w *Wants, tgid int, want map[link][]*bpf.WantedEnd, until time.Time) {
	dir := procfs.TaskDir(tgid)
	fds, err := procfs.FS{Root: l.root() + "/" + dir + "/fd", Readers: l.Proc.Readers}.Tasks()
	if err != nil {
		if !procfs.Gone(err) {
			s.unsettled++
			s.note(err)
		}
		return
	}
	s.processes++
	for len(fds) > 0 {
		if s.timeUp = !time.Now().Before(until); s.timeUp {
			return
		}
		n := min(len(fds), fdPortion)
		files := make([]procfs.File, n)
		for i := range files {
			files[i] = procfs.File{Name: strconv.Itoa(fds[i]), Op: procfs.OpLink, Max: 64}
		}
		l.Proc.Read(dir+"/fd", files)
		for i := range files {
			s.looked++
			s.note(files[i].Err)
			for _, e := range want[linkOf(files[i].Data)] {
				l.add(s, w, uint32(tgid), fds[i], e)
			}
		}
		fds = fds[n:]
	}
}

func (s *scanned) note(err error) {
	if err != nil && !procfs.Gone(err) {
		s.hung = nothing(err)
	}
}

// linkOf reads "pipe:[1234]" or "socket:[1234]".
func linkOf(text []byte) link {
	name, rest, _ := bytes.Cut(text, []byte(":["))
	digits, ok := bytes.CutSuffix(rest, []byte("]"))
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if !ok || err != nil {
		return link{}
	}
	switch string(name) {
	case "pipe":
		return link{kcdata.FilePipe, n}
	case "socket":
		return link{kcdata.FileSocket, n}
	}
	return link{}
}

// add keeps a descriptor of a process as an end.
func (l *Looker) add(s *scanned, w *Wants, tgid uint32, fd int, of *bpf.WantedEnd) {
	if len(s.ends) >= mostEnds {
		s.tooMany = true
		return
	}
	e := kcdata.LinuxEnd{
		Flags: kcdata.EndSame, Kind: of.Kind, Object: of.Object, Of: of.Object, Inode: of.Inode, Dev: of.Dev,
		Tgid: tgid, Fd: int32(fd), Start: l.began(w, int64(tgid)), Family: of.Family, Sort: of.Sort, NetNS: of.NetNS,
	}
	b, err := l.read(procfs.TaskDir(int(tgid))+"/fdinfo", procfs.File{Name: strconv.Itoa(fd)})
	s.note(err)
	switch openMode(b) {
	case 0:
		e.Flags |= kcdata.EndReads
	case 1:
		e.Flags |= kcdata.EndWrites
	case 2:
		e.Flags |= kcdata.EndReads | kcdata.EndWrites
	}
	s.ends = append(s.ends, e)
}

// openMode is O_RDONLY, O_WRONLY or O_RDWR by an fdinfo file; -1: it does not say.
func openMode(fdinfo []byte) int {
	for line := range bytes.Lines(fdinfo) {
		var flags int
		if n, _ := fmt.Sscanf(string(line), "flags:\t%o", &flags); n == 1 {
			return flags & 3
		}
	}
	return -1
}

// waiters asks what became of the threads.
func (l *Looker) waiters(s *scanned, w *Wants, until time.Time) {
	for _, th := range w.Threads {
		if !time.Now().Before(until) {
			s.timeUp = true
			return
		}
		files := []procfs.File{{Name: "stat"}, {Name: "status"}}
		l.Proc.Read(procfs.TaskDir(int(th.Tid)), files) // the directory of any thread can be opened by its number
		stat, err1 := procfs.ParseStat(files[0].Data)
		status, err2 := procfs.ParseStatus(files[1].Data)
		s.note(files[0].Err)
		if err1 != nil || err2 != nil || !stat.StartedAt(th.Start) {
			continue
		}
		s.waiters[capture.WaiterID{Tid: th.Tid, Start: th.Start}] = capture.Waiter{
			Still:   status.VoluntaryCtxtSwitches+status.NonvoluntaryCtxtSwitches == th.Switches,
			Catches: status.SigCgt != 0,
		}
	}
}
