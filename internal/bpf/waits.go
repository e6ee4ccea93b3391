package bpf

import (
	"cmp"
	"math/bits"
	"runtime"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"stackshot/kcdata"
)

// MaxFutexes is how many words of one futex_waitv are recorded (wait_work.h, WAIT_FUTEXES).
const MaxFutexes = 8

// Waits says whether it is recorded what each thread waits for. The zero value records
// nothing of it.
type Waits struct {
	On    bool
	Slow  []SlowPath // of the kernel's locks; none: the stacks of threads in D are not scanned
	Words bool       // user memory can be read (UserStacks.Memory)
}

// SlowPath is a range of kernel text in which threads sleep that wait for a kind of lock.
type SlowPath struct {
	Start, End uint64
	Kind       uint64 // kcdata.Lock*
}

// What wait_work.h has room for, SLOW_BOUNDS: of two for each path that is used, and one.
const (
	slowBounds   = 32
	maxSlowPaths = (slowBounds - 1) / 2
)

// slowNames are the functions in which a thread sleeps, or whose callees it sleeps in
// (kernel/locking); the compiler may add a suffix after a dot. No rt_mutex is among
// them: its waiters are in a tree, and the task names its own (pi_blocked_on).
var slowNames = map[string]uint64{
	"__mutex_lock": kcdata.LockMutex, "__mutex_lock_common": kcdata.LockMutex, "__mutex_lock_slowpath": kcdata.LockMutex,
	"__mutex_lock_killable_slowpath": kcdata.LockMutex, "__mutex_lock_interruptible_slowpath": kcdata.LockMutex,
	"__ww_mutex_lock": kcdata.LockMutex, "__ww_mutex_lock_slowpath": kcdata.LockMutex, "__ww_mutex_lock_interruptible_slowpath": kcdata.LockMutex,
	"rwsem_down_read_slowpath": kcdata.LockRWSemRead, "rwsem_down_write_slowpath": kcdata.LockRWSemWrite,
	"__down": kcdata.LockSemaphore, "__down_common": kcdata.LockSemaphore, "___down_common": kcdata.LockSemaphore,
	"__down_interruptible": kcdata.LockSemaphore, "__down_killable": kcdata.LockSemaphore, "__down_timeout": kcdata.LockSemaphore,
}

// SlowPathKind is the kind of lock for which threads sleep in a function of the kernel
// itself; kcdata.LockNone: for none.
func SlowPathKind(function string) uint64 {
	base, suffix, _ := strings.Cut(function, ".")
	if slices.Contains(strings.Split(suffix, "."), "cold") { // far from the rest, and nobody sleeps there
		return kcdata.LockNone
	}
	return slowNames[base]
}

// slowPaths are the ranges as the programs take them, ascending; those that touch and are
// of one kind are one.
func (w Waits) slowPaths() (list []SlowPath) {
	for _, p := range slices.SortedFunc(slices.Values(w.Slow), func(a, b SlowPath) int { return cmp.Compare(a.Start, b.Start) }) {
		if last := len(list) - 1; last >= 0 && list[last].End == p.Start && list[last].Kind == p.Kind {
			list[last].End = p.End
			continue
		}
		list = append(list, p)
	}
	// The programs compute with differences of 63 bits. No kernel has so many ranges, or so
	// far from each other.
	if len(list) > maxSlowPaths || len(list) > 0 && list[len(list)-1].End-list[0].Start > 1<<32 {
		return nil
	}
	return list
}

// slowBound is where a path begins, or with Kind 0 where one ends.
type slowBound struct{ At, Kind uint64 }

// bounds are the table of the slow paths, and what they all lie in; length 0: there are none.
func (w Waits) bounds() (table [slowBounds]slowBound, start, length uint64) {
	list := w.slowPaths()
	if len(list) == 0 {
		return table, 0, 0
	}
	all := []slowBound{}
	for _, p := range list {
		if last := len(all) - 1; last >= 0 && all[last].At == p.Start {
			all = all[:last]
		}
		all = append(all, slowBound{p.Start, p.Kind}, slowBound{p.End, kcdata.LockNone})
	}
	for i := range table {
		table[i].At = 1<<63 - 1 + list[0].Start // far beyond: the programs compute with differences of 63 bits
	}
	copy(table[:], all)
	return table, list[0].Start, list[len(list)-1].End - list[0].Start
}

// signedBits are those bits of a return address that are 1 in every address of these
// paths, the topmost ones: whatever a signature takes of it (arm64) is among them.
func signedBits(start uint64) uint64 {
	if runtime.GOARCH != "arm64" || start == 0 {
		return 0
	}
	return ^(^uint64(0) >> bits.LeadingZeros64(^start))
}

// waitLayout is where a kernel's locks keep their waiters; known is false if this code
// knows the waiter records of that kernel not (a kernel with PREEMPT_RT has none).
type waitLayout struct {
	known bool
	ring  bool      // a lock has no list head: it points to its first waiter
	list  [8]uint64 // by kcdata.Lock*: of the head, or the pointer, in the lock
}

// lockTypes are the kernel's locks with a list of waiters, and the waiters' records.
var lockTypes = []struct {
	lock, waiter string
	kinds        []int
}{
	{"mutex", "mutex_waiter", []int{kcdata.LockMutex}},
	{"semaphore", "semaphore_waiter", []int{kcdata.LockSemaphore}},
	{"rw_semaphore", "rwsem_waiter", []int{kcdata.LockRWSemRead, kcdata.LockRWSemWrite}},
}

func layoutOfWaits(types *btf.Spec) (l waitLayout) {
	rings := 0
	for _, t := range lockTypes {
		at, ring, ok := waitList(types, t.lock)
		if !ok || !waiterKnown(types, t.waiter) {
			return waitLayout{}
		}
		if ring {
			rings++
		}
		for _, kind := range t.kinds {
			l.list[kind] = uint64(at)
		}
	}
	l.ring = rings > 0
	l.known = rings == 0 || rings == len(lockTypes)
	return l
}

// waitList finds a lock's list of waiters: until 2026 a list head, since then a pointer
// ("locking/mutex: Remove the list_head from struct mutex").
func waitList(types *btf.Spec, lock string) (at uint32, ring, ok bool) {
	if at, ok = fieldAt(types, lock, "wait_list"); ok {
		return at, false, true
	}
	at, ok = fieldAt(types, lock, "first_waiter")
	return at, true, ok
}

// waiterKnown says that a waiter's record begins as wait_scan.h reads it: two links, then
// the task.
func waiterKnown(types *btf.Spec, waiter string) bool {
	list, ok := fieldAt(types, waiter, "list")
	task, ok2 := fieldAt(types, waiter, "task")
	return ok && ok2 && list == 0 && task == 16
}

func fieldAt(types *btf.Spec, name, field string) (at uint32, ok bool) {
	m, ok := fieldOf(types, name, field)
	return m.Offset.Bytes(), ok
}

func fieldOf(types *btf.Spec, name, field string) (btf.Member, bool) {
	var s *btf.Struct
	if types.TypeByName(name, &s) != nil {
		return btf.Member{}, false
	}
	for _, m := range s.Members {
		if m.Name == field {
			return m, true
		}
	}
	return btf.Member{}, false
}

// sources are the kcdata.WaitHas* bits of a kernel.
func (w Waits) sources(types *btf.Spec) (has uint32) {
	if !w.On {
		return 0
	}
	if namesMutex(types) {
		has |= kcdata.WaitHasBlockedOn
	}
	for field, bit := range map[string]uint32{"blocker": kcdata.WaitHasBlocker, "pi_blocked_on": kcdata.WaitHasPI} {
		if _, ok := fieldAt(types, "task_struct", field); ok {
			has |= bit
		}
	}
	l := layoutOfWaits(types)
	if l.known && len(w.slowPaths()) > 0 {
		has |= kcdata.WaitHasScan
	}
	if l.known && l.ring {
		has |= kcdata.WaitHasRing
	}
	if w.Words {
		has |= kcdata.WaitHasWords
	}
	return has | kcdata.WaitHasFrozen // a state of its own since 6.1
}

// namesMutex says that blocked_on leads to the mutex. Until "locking/mutex: Rework
// task_struct::blocked_on" it led to the waiter's record, on kernels with
// CONFIG_DEBUG_MUTEXES; others had no such field.
func namesMutex(types *btf.Spec) bool {
	m, ok := fieldOf(types, "task_struct", "blocked_on")
	if !ok {
		return false
	}
	p, ok := btf.As[*btf.Pointer](m.Type)
	if !ok {
		return false
	}
	s, ok := btf.As[*btf.Struct](p.Target)
	return ok && s.Name == "mutex"
}

// fileSources are the kcdata.FilesHas* bits of a kernel, as far as the window can have them.
func (w Waits) fileSources(types *btf.Spec) uint32 {
	if !w.On {
		return 0
	}
	return fileSources(filePlaces(types, moduleTypes))
}

// set tells the programs. types are the running kernel's.
func (w Waits) set(spec *ebpf.CollectionSpec, types *btf.Spec) error {
	if !w.On {
		return nil
	}
	if err := setFiles(spec, types); err != nil {
		return err
	}
	table, start, length := w.bounds()
	l := layoutOfWaits(types)
	if !l.known {
		length = 0
	}
	return setValues(spec, map[string]any{
		"cfg_wait": uint32(1), "cfg_wait_mutex": Flag(namesMutex(types)), "cfg_wait_ring": Flag(l.ring), "cfg_wait_list": l.list,
		"cfg_wait_signed": signedBits(start), "cfg_slow_start": start, "cfg_slow_len": length, "cfg_slow": table,
	})
}
