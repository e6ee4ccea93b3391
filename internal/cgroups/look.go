package cgroups

import (
	"errors"
	"slices"
	"sync"
	"time"

	"stackshot/internal/capture"
	"stackshot/internal/clock"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// Budget is the time for all that is read.
const Budget = 500 * time.Millisecond

// MostGroups is how many groups with threads a file has at most.
const MostGroups = 1 << 12

// Member is a process of the capture.
type Member struct {
	Tgid    int
	Threads uint32
}

// Looker reads control groups. It may be used again.
type Looker struct {
	Proc   procfs.FS // with time limits
	Root   string    // in place of / for the groups' directories; for tests
	Budget time.Duration
	Most   int // groups with threads
}

// look is one reading. Whoever reads changes it under mu, and not at all when it is over.
type look struct {
	*Looker
	until time.Time // no read begins after it

	mu     sync.Mutex
	over   bool
	ended  bool
	taken  kcdata.LinuxCgroupsTaken
	list   []*group // with threads: all; when they are ranked, at most Most
	groups map[key]*group
	ranked bool
	asked  int // members that were asked
}

type key struct {
	version uint16
	path    string
}

// group is one control group.
type group struct {
	kcdata.LinuxCgroup
	path string
	done bool // it was read
	flat bool // version 1: it does not count for those below it
	hung bool // a read did not end in time
}

// Look reads the groups of these processes. It ends within l.Budget, and what comes later is
// dropped.
func (l *Looker) Look(members []Member) *capture.Cgroups {
	began := time.Now()
	s := &look{Looker: l, until: began.Add(l.Budget - l.Budget/6), groups: map[key]*group{}}
	s.taken.AtNs, s.taken.Tasks = uint64(clock.Nanotime()), uint32(len(members))
	ended := make(chan struct{})
	go func() {
		s.read(members)
		s.put(func() { s.ended = true })
		close(ended)
	}()
	timer := time.NewTimer(l.Budget)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over = true; !s.ended {
		s.taken.Flags |= kcdata.CgroupsHung
	}
	out := s.result()
	out.Taken.TotalNs = uint64(time.Since(began))
	return out
}

// put changes the result, unless it is over.
func (s *look) put(change func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		change()
	}
	return !s.over
}

func (s *look) timeLeft() bool { return time.Now().Before(s.until) }

func (s *look) read(members []Member) {
	where, err := findPlaces(s.Proc)
	if err != nil {
		s.put(func() { s.hang(err) })
	}
	if !s.members(members) || !s.put(s.rank) {
		return
	}
	reader := groupReader{look: s, where: where, files: map[uint16][]procfs.File{1: readable(filesOf[1]), 2: readable(filesOf[2])}}
	for _, g := range s.list { // nobody else changes it any more
		if !reader.climb(g) {
			return
		}
	}
}

func (s *look) hang(err error) {
	if errors.Is(err, procfs.ErrTimeout) || errors.Is(err, procfs.ErrExhausted) {
		s.taken.Flags |= kcdata.CgroupsHung
	}
}

// members asks each process for its group, those with the most threads first, as far as they come in
// half of the time.
func (s *look) members(list []Member) bool {
	half := time.Now().Add(time.Until(s.until) / 2)
	files := make([]procfs.File, batch)
	for some := range slices.Chunk(byThreads(list), batch) {
		if !time.Now().Before(half) {
			break
		}
		for i, m := range some {
			files[i].Name, files[i].Max = procfs.TaskDir(m.Tgid)+"/cgroup", maxMembership
		}
		s.Proc.Read("", files[:len(some)])
		for i, m := range some {
			k, err := keyOf(files[i])
			if !s.put(func() { s.member(m, k, err) }) {
				return false
			}
		}
	}
	return true
}

// batch is how many processes one reader asks in one go. It takes half of the time of asking each
// alone.
const batch = 32

// maxMembership is the size up to which /proc/PID/cgroup is read, in bytes.
const maxMembership = 16 << 10

func keyOf(f procfs.File) (key, error) {
	if f.Err != nil {
		return key{}, f.Err
	}
	lines, err := procfs.ParseCgroup(f.Data)
	if err != nil {
		return key{}, err
	}
	line, version := procfs.MemoryCgroup(lines)
	return key{uint16(version), line.Path}, nil
}

// member notes the group of a process.
func (s *look) member(m Member, k key, err error) {
	s.asked++
	switch {
	case err != nil && procfs.Gone(err):
		return
	case err != nil || k.version == 0:
		s.taken.Unknown++
		s.hang(err)
		return
	}
	g := s.groups[k]
	if g == nil {
		g = newGroup(k)
		s.groups[k], s.list = g, append(s.list, g)
	}
	g.Tasks++
	g.Threads += m.Threads
}

func newGroup(k key) *group {
	g := &group{path: k.path}
	g.Version = k.version
	return g
}

// rank sorts the groups by their threads, drops those for which there is no room, and adds the groups
// above the others, which are not read yet.
func (s *look) rank() {
	sortByThreads(s.list)
	s.ranked, s.taken.Groups = true, uint32(len(s.list))
	for _, g := range s.list {
		s.taken.Version = max(s.taken.Version, uint32(g.Version))
	}
	s.list = s.list[:min(len(s.list), s.Most)]
	s.groups = make(map[key]*group, len(s.list))
	for _, g := range s.list {
		s.groups[g.key()] = g
	}
	for i, g := range s.list {
		if len(s.groups) > most {
			for _, g := range s.list[i:] {
				delete(s.groups, g.key())
			}
			s.list = s.list[:i]
			break
		}
		s.addAbove(g)
	}
	s.taken.Rest = s.taken.Groups - uint32(len(s.list))
}

// most bounds the groups that are read, without those above the last one.
const most = 2 * MostGroups

func (s *look) addAbove(g *group) {
	for path, ok := parent(g.path); ok; path, ok = parent(path) {
		k := key{g.Version, path}
		if s.groups[k] == nil {
			above := newGroup(k)
			above.Flags = kcdata.CgroupAbove
			s.groups[k] = above
		}
	}
}

func (g *group) key() key { return key{g.Version, g.path} }
