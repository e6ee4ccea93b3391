package waits

import (
	"fmt"
	"time"

	"stackshot/kcdata"
)

// objectKinds are the kinds of kcdata.Futex* objects.
var objectKinds = map[uint32]Kind{
	kcdata.FutexGlibcMutex: UserMutex, kcdata.FutexMuslMutex: UserMutex, kcdata.FutexMuslNormal: UserMutex,
	kcdata.FutexGlibcRWLock: UserRWLock, kcdata.FutexGlibcJoin: UserJoin, kcdata.FutexMuslJoin: UserJoin,
	kcdata.FutexPIWord: UserPIMutex,
}

// futex takes the words that a thread in a futex call waits for. An owner that a word names is
// sure: the fields around it are those that the library writes, the owner lives, with that
// start, in the same process or with the same memory mapped, and nobody could write the word
// while it was read. What the names on a user stack tell has no owner.
func (f *finder) futex(w *Wait) bool {
	fs := w.Thread.Futexes
	if len(fs) == 0 {
		return false
	}
	w.Evidence, w.Kind = Word, Futex
	for i := range fs {
		w.Timed = w.Timed || fs[i].Flags&kcdata.FutexTimed != 0
	}
	if r := w.Thread.Wait; len(fs) > 1 || r != nil && r.Flags&kcdata.WaitFewFutexes != 0 {
		f.severalFutexes(w)
		return true
	}
	f.oneFutex(w, &fs[0])
	return true
}

func (f *finder) oneFutex(w *Wait, x *kcdata.LinuxFutex) {
	kind, ok := userKind(w.Task, w.Thread)
	if kind.IsQueued() && x.Flags&kcdata.FutexPI == 0 {
		w.Kind, w.Evidence, w.Resource = kind, Stack, Resource{Kind: kind, Task: w.Task.ID}
		if w.Timed && kind == JavaMonitor {
			w.lookAgain()
		}
		return
	}
	w.Kind = kindOfWord(x)
	w.Resource = f.word(w.Task, x)
	if kind.IsOnce() { // the guard's futex is not private, but its memory is
		w.Resource = Resource{Kind: Futex, Task: w.Task.ID, ID: x.Addr}
	}
	if ok && w.Kind == Futex {
		w.Kind, w.Evidence = kind, Stack
	} else if ok && ownWords(kind) && x.Flags&kcdata.FutexPI == 0 {
		f.owned[w.Resource] = kind
	}
	if known, ok := f.named[w.Resource]; !ok || known == Futex {
		f.named[w.Resource] = w.Kind
	}
	if o, ok := f.wordOwner(w, x); ok {
		w.Owners = append(w.Owners, o)
	}
	wordNotes(w, x)
}

// One of those who wait for a monitor of Java looks again after 1, 8, 64, 512 and then each 1000 ms (HotSpot's
// ObjectMonitor::EnterI, until release 23).
const lastLook, looksBefore = 512 * uint64(time.Millisecond), 585 * uint64(time.Millisecond)

// lookAgain is for a wait whose timeout does not end it.
func (w *Wait) lookAgain() {
	w.Timed, w.Again = false, true
	w.note("it looks again each second at the latest, and may have waited for longer")
	if w.Age.Known && w.Age.Ns > lastLook && w.Age.Ns < 2*lastLook {
		w.Age.Ns, w.Age.About = w.Age.Ns+looksBefore, true
	}
}

// kindOfWord is what the bytes around the word say it is.
func kindOfWord(x *kcdata.LinuxFutex) Kind {
	if kind, ok := objectKinds[x.Object]; ok {
		return kind
	}
	if x.Flags&kcdata.FutexPI != 0 {
		return UserPIMutex
	}
	return Futex
}

// word names the word x: a private one by its process, a shared one by the place where the
// kernel sees it. Without a place it is known in its process alone, but in a redacted file,
// where its number stands for the place.
func (f *finder) word(task *kcdata.Task, x *kcdata.LinuxFutex) Resource {
	switch {
	case x.Flags&kcdata.FutexPrivate == 0 && x.Place != 0:
		return Resource{Kind: Futex, ID: x.Place}
	case x.Flags&kcdata.FutexPrivate == 0 && f.s.Machine.Redacted != 0:
		return Resource{Kind: Futex, ID: x.Addr}
	}
	return Resource{Kind: Futex, Task: task.ID, ID: x.Addr}
}

// wordOwner is who has the lock that x is the word of. For one with priority inheritance the
// kernel knows it, too, and its word counts.
func (f *finder) wordOwner(w *Wait, x *kcdata.LinuxFutex) (Owner, bool) {
	relation := Holds
	if kindOfWord(x) == UserJoin {
		relation = Joined
	}
	if r := w.Thread.Wait; x.Flags&kcdata.FutexPI != 0 && r != nil && r.Flags&kcdata.WaitPI != 0 && r.Flags&kcdata.WaitOwned != 0 {
		o, note := f.find(r.OwnerTid, r.OwnerTgid, r.OwnerStart, relation)
		w.Evidence = Field
		if note != "" {
			w.note(note)
		}
		return o, note == ""
	}
	if x.Flags&(kcdata.FutexAmbiguous|kcdata.FutexOwnerUnsure) != 0 {
		return Owner{}, false
	}
	if x.Flags&(kcdata.FutexOwnerDied|kcdata.FutexOwnerGone) != 0 {
		return f.lateOwner(w, x, relation), true
	}
	if x.OwnerTid == 0 {
		return Owner{}, false
	}
	m, ok := f.started(x.OwnerTid, x.OwnerStart)
	switch {
	case x.Flags&kcdata.FutexOwned == 0:
		return Owner{}, false
	case !ok:
		w.note(fmt.Sprintf("thread %d, which the word names, is not that thread of this file", x.OwnerTid))
		return Owner{}, false
	}
	return m.owner(relation), true
}

// lateOwner is an owner that died with the lock, or that the file does not have. If the file has
// all tasks, the second died, too: a plain mutex does not note that its owner ended. The number
// may have been used in another pid namespace, so that is likely and no more. If a thread of
// another process has the number, nobody is known: not even that the owner ended.
func (f *finder) lateOwner(w *Wait, x *kcdata.LinuxFutex, r Relation) Owner {
	died := x.Flags&kcdata.FutexOwnerDied != 0
	gone := x.Flags&kcdata.FutexOwnerGone != 0
	m, ok := f.started(x.OwnerTid, x.OwnerStart)
	switch {
	case gone && ok && r == Holds && f.forkedFrom(w.Task, m.task, x.OwnerStart):
		w.Confidence = Likely
		w.note("it was held when its process was forked, where nobody can give it up; or it is private, and several processes use it")
		return Owner{Tid: x.OwnerTid, Pid: x.OwnerTgid, Relation: r, Forked: m.task}
	case gone && ok:
		w.Confidence = Likely
		w.note(fmt.Sprintf("its word names thread %d, which is of another process: the lock was held while its process was forked, or it is private and several processes "+
			"use it, or its owner ended and the number was given away again", x.OwnerTid))
		return Owner{Relation: r}
	case gone:
		or := ""
		if noExec(w.Task) {
			or = ", or held it when the process was forked"
		}
		w.note(fmt.Sprintf("its word names an owner that is not in this file%s: it ended, or is of another pid namespace%s", ofNumber(x.OwnerTid), or))
	case ok:
		o := m.owner(r)
		o.Dead = died
		return o
	}
	if !died {
		w.Confidence = Likely
	}
	return Owner{Tid: x.OwnerTid, Pid: x.OwnerTgid, Relation: r, Dead: died || f.whole() && !noExec(w.Task)}
}

// forkedFrom reports whether task was forked from a process, directly or not, when a thread of that had begun.
func (f *finder) forkedFrom(task, from *kcdata.Task, begin uint64) bool {
	for range maxForks {
		if task == nil || task.Linux.Ppid == 0 || len(task.Threads) == 0 || !noExec(task) {
			return false
		}
		forked := task.Threads[0].Linux.StartBoottime
		if task = f.byPid[task.Linux.Ppid]; task == from {
			return begin <= forked
		}
	}
	return false
}

// noExec reports whether task was forked and has executed no program since.
func noExec(task *kcdata.Task) bool {
	return len(task.Threads) > 0 && task.Threads[0].Linux.Flags&kcdata.PFForkNoExec != 0
}

// maxForks is how many forks away the process is looked for that held a lock.
const maxForks = 8

// severalFutexes is for futex_waitv: each of the words ends the wait. Owners are named only if
// all words have one, since one without could be given by anybody.
func (f *finder) severalFutexes(w *Wait) {
	fs := w.Thread.Futexes
	var owners []Owner
	for i := range fs {
		if o, ok := f.wordOwner(w, &fs[i]); ok && len(owners) < maxOwners {
			owners = append(owners, o)
		}
	}
	few := w.Thread.Wait != nil && w.Thread.Wait.Flags&kcdata.WaitFewFutexes != 0
	if few {
		w.note(fmt.Sprintf("it waits for more futexes than the %d that were recorded", len(fs)))
	}
	if few || len(owners) < len(fs) {
		w.note(fmt.Sprintf("%d of the %d futexes it waits for have a known owner, and any of them ends the wait", len(owners), len(fs)))
		return
	}
	w.Owners, w.AnyOwner = owners, true
}

// nameWords gives equal words one kind, that of the wait that told most: of two threads that
// wait for the same word, the page around it may be present for one alone. A word of a
// runtime that has its own names no owner.
func (f *finder) nameWords(all []*Wait) {
	for _, w := range all {
		if w.Resource.Kind != Futex {
			continue
		}
		if kind, ok := f.owned[w.Resource]; ok {
			w.Kind, w.Evidence, w.Confidence, w.Owners, w.Notes = kind, Stack, Sure, nil, nil
			f.named[w.Resource] = kind
		}
		if kind, ok := f.named[w.Resource]; ok {
			w.Resource.Kind = kind
		}
	}
}

// wordNotes says what else is known of the word.
func wordNotes(w *Wait, x *kcdata.LinuxFutex) {
	for _, n := range []struct {
		when bool
		text string
	}{
		{x.Object == kcdata.FutexMuslNormal, "musl's normal mutex keeps no owner"},
		{x.Flags&kcdata.FutexAmbiguous != 0, "more than one thread may be its owner, so none is named"},
		{x.Flags&kcdata.FutexOwnerUnsure != 0, "whether its owner has the same memory mapped could not be found out, so none is named"},
		{x.Flags&kcdata.FutexOwnerDied != 0, "its owner died with it held"},
		{x.Flags&kcdata.FutexDiffers != 0, "its word names another owner than the kernel, which counts"},
		{x.Object == kcdata.FutexGlibcRWLock && x.OwnerTid == 0, "readers hold it, or a writer has just let it go"},
		{x.Flags&kcdata.FutexAbsent != 0 && x.OwnerTid == 0, "bytes around its word are not in memory"},
		{x.Flags&kcdata.FutexRefused != 0, "bytes around its word are not ordinary memory of its process"},
	} {
		if n.when {
			w.note(n.text)
		}
	}
}

func ofNumber(tid uint32) string {
	if tid == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d)", tid)
}
