package waits

import (
	"cmp"
	"slices"

	"stackshot/kcdata"
)

// maxSide bounds the processes that are named for one wait at a file, and is as many ends as a
// capture keeps of one object. Where there are more processes, none is named: which of them will
// act is not to be foreseen.
const maxSide = 64

// sideKey names one part of the ends of an object; by says what the object is known by.
type sideKey struct {
	by     by
	part   part
	object uint64
}

type by uint8

const (
	byObject by = iota
	byDevice    // of a FUSE file system
	byMemory    // of a process
)

// side is who has one part of the ends of an object.
type side struct {
	relation    Relation
	who         []holder // in the order of (tgid, start): what the file's order does not decide
	crowd       bool     // more than maxSide: who is empty
	full        bool     // as many as are kept of one object: there may be more
	tool        bool     // this program has it
	strangers   uint32   // numbers of processes that began at another time than the file's process of that number
	younger     uint32   // processes that began after the capture
	files       int      // different open file descriptions
	unnamed     bool     // the open file descriptions are not known: from /proc
	loose       bool     // somebody else may have one of them: there are more references than descriptors
	unread      uint64   // the most bytes that lie unread at one of them
	object      uint64   // the smallest object that one of them leads to
	plain, owed []Owner  // who, as owners; shared by all who wait for them
}

// holder is a process that has a part.
type holder struct {
	owner Owner
	start uint64
	file  uint64 // of its descriptors, the smallest open file description
	kinds uint32 // of its locks: a bit for each FileLock* kind
}

// relation is what who has part p of the ends has to do with a wait.
func (p part) relation(b by) Relation {
	switch {
	case b == byMemory:
		return Pager
	case p == listens || p == accepts:
		return Listener
	case p == locks:
		return Holds
	case p == serves:
		return Server
	}
	return OtherEnd
}

// side finds out who has part p of the ends of object.
func (f *finder) side(b by, p part, object uint64) *side {
	key := sideKey{b, p, object}
	if s := f.ends.sides[key]; s != nil {
		return s
	}
	s := f.newSide(b, p, object)
	f.ends.sides[key] = s
	return s
}

func (f *finder) newSide(b by, p part, object uint64) *side {
	s := &side{relation: p.relation(b)}
	l := map[by]*list{byObject: &f.ends.of, byDevice: &f.ends.fuse, byMemory: &f.ends.pagers}[b]
	i, ok := l.head[object]
	if !ok {
		return s
	}
	var readers, rest int // a capture keeps as many that only read, and as many others
	seen, files := map[process]int{}, map[uint64]struct{}{}
	for ; i >= 0; i = l.next[i] {
		f.ends.visits++
		e := &f.ends.all[i]
		if e.Flags&(kcdata.EndReads|kcdata.EndWrites) == kcdata.EndReads {
			readers++
		} else {
			rest++
		}
		if !p.isOf(e) || e.Tgid == 0 && e.Start == 0 {
			continue
		}
		s.add(f, e, seen)
		s.unnamed = s.unnamed || e.File == 0
		files[e.File] = struct{}{}
	}
	s.files, s.full = len(files), rest >= maxSide || p == reads && readers >= maxSide
	if len(s.who) > maxSide {
		s.crowd, s.who = true, nil
	}
	slices.SortFunc(s.who, func(a, b holder) int {
		return cmp.Or(cmp.Compare(a.owner.Pid, b.owner.Pid), cmp.Compare(a.start, b.start))
	})
	// Of those that the file does not have, no two are told apart by their number.
	s.who = slices.CompactFunc(s.who, func(a, b holder) bool {
		return a.owner.Pid == b.owner.Pid && a.owner.Thread == nil && b.owner.Thread == nil
	})
	for _, h := range s.who {
		s.plain = append(s.plain, h.owner)
		h.owner.Owes = true
		s.owed = append(s.owed, h.owner)
	}
	return s
}

// process is one process: its number may be another one's later.
type process struct {
	tgid  uint32
	start uint64
}

func (s *side) add(f *finder, e *kcdata.LinuxEnd, seen map[process]int) {
	s.unread = max(s.unread, e.BytesIn)
	if e.Object != 0 && (s.object == 0 || e.Object < s.object) {
		s.object = e.Object
	}
	// Each descriptor is a reference, and each call that is under way in a process with threads.
	if e.File != 0 && e.Refs > f.ends.descs[e.File]+f.ends.calls[e.File] {
		s.loose = true
	}
	id := process{e.Tgid, e.Start}
	if at, ok := seen[id]; ok {
		if at >= 0 && at < len(s.who) {
			s.who[at].file = min(s.who[at].file, e.File)
			s.who[at].kinds |= bit(e.LockKind)
		}
		return
	}
	seen[id] = -1
	o, is := f.process(e.Tgid, e.Start, s.relation)
	switch is {
	case isTool:
		s.tool = true
	case isStranger:
		s.strangers++
	case isYounger:
		s.younger++
	default:
		seen[id] = len(s.who)
		if len(s.who) <= maxSide {
			s.who = append(s.who, holder{o, e.Start, e.File, bit(e.LockKind)})
		}
	}
}

// identity is what is known of a process that was seen after the release.
type identity uint8

const (
	isHere     identity = iota // the file has it
	isAbsent                   // the file does not have it
	isTool                     // it is this program
	isStranger                 // its number is another process's in the file
	isYounger                  // it began after the capture
)

// process is the process with this number and start as an owner.
func (f *finder) process(tgid uint32, start uint64, r Relation) (Owner, identity) {
	o := Owner{Tid: tgid, Pid: tgid, Relation: r, Whole: true}
	task := f.byPid[tgid]
	switch {
	case tgid == 0:
		return o, isAbsent // of another pid namespace than the recorded
	case task == nil && f.s.Machine.BoottimeNs != 0 && start > f.s.Machine.BoottimeNs:
		return o, isYounger
	case task == nil:
		return o, isAbsent
	case task.IsSelf():
		return o, isTool
	}
	if m, ok := f.started(tgid, start); !ok || m.task != task {
		return o, isStranger
	}
	o.Task, o.Thread = task, leaderOf(task)
	return o, isHere
}

// others are the owners of s but task; mine reports whether task is among them. The slice is
// shared: nobody may change it.
func (s *side) others(task *kcdata.Task, owes bool) (out []Owner, mine bool) {
	all := s.plain
	if owes {
		all = s.owed
	}
	at := slices.IndexFunc(all, func(o Owner) bool { return o.Task == task })
	if at < 0 {
		return all[:len(all):len(all)], false
	}
	return slices.Delete(slices.Clone(all), at, at+1), true
}
