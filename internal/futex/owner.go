package futex

import "stackshot/kcdata"

// Sharing is whether two processes see a futex word in the same memory.
type Sharing int

const (
	Apart  Sharing = iota // they do not, as far as both their mappings tell
	Same                  // they do: it is proven
	Unsure                // it could not be found out
)

// Memory tells whether the process other has the word that a thread of process waits for,
// too. Processes are numbers (tgid) of the recorded namespace.
type Memory interface {
	Shares(f *kcdata.LinuxFutex, process, other uint32) Sharing
}

// found are the bits of LinuxFutex.Flags that Owner sets.
const found = kcdata.FutexOwned | kcdata.FutexAmbiguous | kcdata.FutexOwnerDied | kcdata.FutexOwnerGone |
	kcdata.FutexOwnerUnsure | kcdata.FutexDiffers

// maxForeign bounds the threads of other processes that are held against one word. With more
// nobody is named.
const maxForeign = 64

// claim is what one reading of the bytes says.
type claim struct {
	object uint32
	flags  uint32
	owner  int32 // -1: not named
}

// Clear takes what collation finds out of f: it may hold anything before.
func Clear(f *kcdata.LinuxFutex) {
	f.Object, f.OwnerTid, f.OwnerTgid, f.OwnerStart, f.Flags = 0, 0, 0, 0, f.Flags&^found
}

// Owner sets the fields of f that collation finds out: object, owner_*, and the flags. waiter is
// the place of the thread that waits. Whatever the fields held before is gone.
func (x *Index) Owner(f *kcdata.LinuxFutex, waiter int, mem Memory) {
	Clear(f)
	var all []claim
	for _, r := range Read(f) {
		if c, ok := x.claim(f, r, waiter, mem); ok {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return
	}
	for _, c := range all[1:] {
		if c.owner != all[0].owner || c.owner < 0 {
			f.Flags |= kcdata.FutexAmbiguous
			return
		}
	}
	f.Object, f.Flags = all[0].object, f.Flags|all[0].flags
	if i := all[0].owner; i >= 0 {
		o := &x.t.threads[i]
		f.OwnerTid, f.OwnerTgid, f.OwnerStart = o.Tid, o.Tgid, o.Start
	}
}

// claim holds one reading against the threads. ok is false if they show that the bytes are
// something else.
func (x *Index) claim(f *kcdata.LinuxFutex, r Reading, waiter int, mem Memory) (c claim, ok bool) {
	c = claim{object: r.Object, owner: -1}
	if r.Users > x.most(f, waiter) {
		return c, false
	}
	if r.Died {
		c.flags = kcdata.FutexOwnerDied
	}
	if r.Number == 0 {
		return c, true
	}
	who, unsure := x.candidates(f, r, waiter, mem)
	switch {
	case len(who) == 1 && int(who[0]) == waiter && !r.OwnSelf:
		return c, false
	case r.Joined:
		if len(who) != 1 || x.t.threads[who[0]].Dead {
			return c, false
		}
		c.owner, c.flags = who[0], kcdata.FutexOwned
	case len(who) > 1:
		c.flags |= kcdata.FutexAmbiguous
	case unsure:
		c.flags |= kcdata.FutexOwnerUnsure
	case len(who) == 0:
		if !r.Died { // else the number belongs to nobody any more
			c.flags |= kcdata.FutexOwnerGone
			if w := &x.t.threads[waiter]; w.own.ns != unknownNS {
				c.owner = first(x.byNS[number{w.own.ns, r.Number}])
			}
		}
	case x.t.threads[who[0]].Dead:
		c.owner, c.flags = who[0], kcdata.FutexOwnerDied
	case !r.Died:
		c.owner, c.flags = who[0], kcdata.FutexOwned
	}
	return c, true
}

// first is the first of some threads; -1: there is none.
func first(threads []int32) int32 {
	if len(threads) == 0 {
		return -1
	}
	return threads[0]
}

// most is how many threads can use the word.
func (x *Index) most(f *kcdata.LinuxFutex, waiter int) uint32 {
	if f.Flags&kcdata.FutexPrivate != 0 {
		return x.sizes[x.t.threads[waiter].Tgid]
	}
	return uint32(len(x.t.threads))
}

// candidates are the threads that may have written the reading's number. unsure: others, of
// which it is not known whether they have this memory, may have.
//
// A number counts in the waiter's own pid namespace. But a library writes the number that the
// owner has in its own one, so a thread of another namespace with that number, which is known to
// share the memory, makes it ambiguous: two candidates are none. It is never named itself.
func (x *Index) candidates(f *kcdata.LinuxFutex, r Reading, waiter int, mem Memory) (who []int32, unsure bool) {
	w := &x.t.threads[waiter]
	near := x.byNS[number{w.own.ns, r.Number}]
	private := r.Joined || f.Flags&kcdata.FutexPrivate != 0
	asked := 0
	shares := func(i int32) Sharing {
		other := x.t.threads[i].Tgid
		if other == w.Tgid || private {
			return map[bool]Sharing{true: Same, false: Apart}[other == w.Tgid]
		}
		if asked++; asked > maxForeign {
			return Unsure
		}
		return mem.Shares(f, w.Tgid, other)
	}
	if w.own.ns == unknownNS {
		near = nil
	}
	for _, i := range near {
		switch shares(i) {
		case Same:
			who = append(who, i)
		case Unsure:
			unsure = true
		}
	}
	if private || r.Kernel {
		return who, unsure
	}
	for _, i := range x.byOwn[r.Number] {
		if x.t.threads[i].own.ns == w.own.ns {
			continue // one of near
		}
		switch shares(i) {
		case Same:
			who, unsure = append(who, i), unsure || len(who) == 0
		case Unsure:
			unsure = unsure || len(who) == 0 || asked > maxForeign
		}
	}
	return who, unsure
}

// Kernel holds what the kernel says of the owner of the rt_mutex behind a PI futex against the
// word. Where they differ the kernel's counts, and the word names nobody.
func Kernel(f *kcdata.LinuxFutex, w *kcdata.LinuxWait) {
	const known = kcdata.WaitPI | kcdata.WaitOwned
	if f.Object != kcdata.FutexPIWord || w.Flags&known != known || f.Flags&kcdata.FutexOwned == 0 ||
		f.OwnerTid == w.OwnerTid && f.OwnerStart == w.OwnerStart {
		return
	}
	f.Flags = f.Flags&^uint32(kcdata.FutexOwned) | kcdata.FutexDiffers
	f.OwnerTid, f.OwnerTgid, f.OwnerStart = 0, 0, 0
}
