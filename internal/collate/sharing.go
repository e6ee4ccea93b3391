package collate

import (
	"slices"

	"stackshot/internal/futex"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// sharing finds out whether two processes have a futex word in the same memory: for a word that
// names a thread of another process than the waiter's. That is rare, so the mappings of these
// few processes are read again, when all threads are known; they do not go into the file. What
// their mappings cannot tell, a place may: threads of both wait for a word there.
type sharing struct {
	proc    procfs.FS
	dead    bool // nobody's mappings can be read any more
	table   *futex.Table
	hung    map[uint32]bool       // processes whose mappings hang: they are not asked again
	waiting map[uint64][]uint32   // processes that wait for a word by a shared call, by its place
	maps    map[uint32]sharedMaps // what was read
}

const (
	maxSharingReads = 64   // processes whose mappings are read
	maxSharedMaps   = 4096 // shared mappings of one that are kept
)

// sharedMaps are the shared mappings of a process.
type sharedMaps struct {
	all   []procfs.Mapping
	known bool // read, all of them, of the process that was recorded
}

// note takes note of a word that a thread of process tgid waits for.
func (s *sharing) note(f *kcdata.LinuxFutex, tgid uint32) {
	if f.Flags&kcdata.FutexPrivate == 0 && f.Place != 0 && !slices.Contains(s.waiting[f.Place], tgid) {
		s.waiting[f.Place] = append(s.waiting[f.Place], tgid)
	}
}

// Shares reports whether the process other has the word f of process, too.
func (s *sharing) Shares(f *kcdata.LinuxFutex, process, other uint32) futex.Sharing {
	mine := s.read(process)
	at := slices.IndexFunc(mine.all, func(m procfs.Mapping) bool { return f.Addr >= m.Start && f.Addr < m.End })
	if mine.known && at < 0 {
		return futex.Apart // private memory
	}
	if mine.known {
		m := mine.all[at]
		file, off := m, f.Addr-m.Start+m.Offset
		theirs := s.read(other)
		if slices.ContainsFunc(theirs.all, func(m procfs.Mapping) bool {
			return m.Inode == file.Inode && m.DevMajor == file.DevMajor && m.DevMinor == file.DevMinor &&
				off >= m.Offset && off-m.Offset < m.End-m.Start
		}) {
			return futex.Same
		}
		if theirs.known {
			return futex.Apart
		}
	}
	if f.Place != 0 && slices.Contains(s.waiting[f.Place], process) && slices.Contains(s.waiting[f.Place], other) {
		return futex.Same
	}
	return futex.Unsure
}

// read gives the shared mappings of a process.
func (s *sharing) read(tgid uint32) sharedMaps {
	m, ok := s.maps[tgid]
	if !ok && len(s.maps) < maxSharingReads {
		m = s.ask(tgid)
		s.maps[tgid] = m
	}
	return m
}

// ask reads them, if the process is still the one that was recorded.
func (s *sharing) ask(tgid uint32) (out sharedMaps) {
	start, ok := s.table.Process(tgid)
	if s.dead || s.hung[tgid] || !ok {
		return out
	}
	files := []procfs.File{theMaps, theStat}
	s.proc.Read(procfs.TaskDir(int(tgid)), files)
	if files[0].Err != nil || files[1].Err != nil || files[0].Truncated || len(files[0].Data) == 0 { // empty: the first thread has ended
		return out
	}
	if st, err := procfs.ParseStat(files[1].Data); err != nil || !st.StartedAt(start) {
		return out
	}
	for m, err := range procfs.ParseMaps(files[0].Data, procfs.PermShared) {
		if err != nil || len(out.all) == maxSharedMaps {
			return sharedMaps{}
		}
		if m.Inode != 0 {
			m.Path = ""
			out.all = append(out.all, m)
		}
	}
	out.known = true
	return out
}
