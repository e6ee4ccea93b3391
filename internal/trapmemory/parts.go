package trapmemory

import (
	"cmp"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// Memory is what the programs left of one try.
type Memory struct {
	Items []workqueue.Item // in census order
	Parts []bpf.TrapPart   // what became of each item, by its number
	// Fill gives a part of the capture its pieces, or their places, and says how many bytes they are.
	Fill func(*bpf.TrapPart, *capture.Part) (bytes uint64, err error)
	// Panicked: the stop ended in the middle. Of a part that was cut, the threads before the cut
	// are kept too, and items that nobody took are not in a queue that somebody else reads.
	Panicked bool

	over int // items that were not looked at
}

// fate is what became of one task, over all its parts.
type fate struct {
	why  uint32 // the whole task is left out; 0: its parts that are kept are in the file
	cut  uint32 // why the first of its other parts is not whole, but for a thread that ended; 0: there is none
	ends bool   // by the parts that are kept: has the container's end
	last int    // number of the last part that is kept

	opened bool // by the parts that are kept: has the container's begin
}

// LeftOut is why a part is not whole; 0: it is.
func LeftOut(p *bpf.TrapPart) uint32 {
	switch {
	case p.Worker == 0 || p.State == bpf.PartCut:
		return kcdata.LeftOutMaxPause
	case p.State == bpf.PartWhole:
		return 0
	case p.State == bpf.PartVanished:
		return kcdata.LeftOutVanished
	case p.State == bpf.PartNoRoom:
		return kcdata.LeftOutNoSpace
	}
	return kcdata.LeftOutError
}

// leftOut is LeftOut for this memory: a panic cuts parts and keeps items from being taken, and so
// does the CPU that never came back from its item.
func (m *Memory) leftOut(p *bpf.TrapPart) uint32 {
	why := LeftOut(p)
	if m.Panicked && (why == kcdata.LeftOutMaxPause || why == kcdata.LeftOutError) {
		return kcdata.LeftOutPanic
	}
	return why
}

// kept reports whether a part's bytes go into the file. Of a part that was cut, the threads
// before the cut are whole.
func (m *Memory) kept(p *bpf.TrapPart) bool {
	if p.Worker == 0 {
		return false
	}
	return p.State == bpf.PartWhole || m.Panicked && p.State == bpf.PartCut && p.Threads > 0
}

// fates are by census index. A task whose first part is kept is in the file with all that are: a
// process that leaks threads, and takes longer than the pause, is still seen, named and
// counted. Its other parts are listed as left out. Where a CPU was left running, the thread
// that a part begins at can end before the part is recorded: that part is then missing too.
func (m *Memory) fates() map[uint32]*fate {
	out := map[uint32]*fate{}
	for n, it := range m.Items {
		f, part := out[it.Index], &m.Parts[n]
		if f == nil {
			f = new(fate)
			out[it.Index] = f
		}
		if why := m.leftOut(part); why != 0 && why != kcdata.LeftOutVanished && f.cut == 0 {
			f.cut = why
		}
		if m.kept(part) { // the idle threads' container is opened and closed without flags
			idle := it.Tgid == capture.IdleTask
			f.opened = f.opened || part.Flags&bpf.PartOpened != 0 || idle
			f.ends = f.ends || part.Flags&bpf.PartClosed != 0 || idle && part.State == bpf.PartWhole
			f.last = n
		}
	}
	for _, f := range out {
		if !f.opened {
			f.why = cmp.Or(f.cut, kcdata.LeftOutVanished)
		}
	}
	return out
}

// failure describes a part that is not in the file. If the thread at which the part begins
// is gone and the task is not, the part's other threads may live. They are left out then.
func (f *fate) failure(it workqueue.Item, why uint32) capture.Failure {
	if why == kcdata.LeftOutVanished && f.why == 0 {
		return capture.Failure{Item: it, Reason: kcdata.LeftOutError, Errno: unix.ESRCH}
	}
	return capture.Failure{Item: it, Reason: why, Errno: errnoOf(why)}
}

// Into adds to a capture what became of each item. Items that nobody took are added where
// the kernel panicked; else they are still in the queue. did, if not nil, is told of
// each part that is added, with the number of its bytes.
func (m *Memory) Into(c *capture.Raw, did func(part *bpf.TrapPart, bytes uint64)) {
	fates := m.fates()
	for n, it := range m.Items {
		part, f := &m.Parts[n], fates[it.Index]
		if part.Worker == 0 && !m.Panicked {
			continue
		}
		why := f.why
		if why == 0 && !m.kept(part) {
			why = m.leftOut(part)
		}
		if why != 0 {
			c.Failed = append(c.Failed, f.failure(it, why))
			continue
		}
		one := capture.Part{Item: it, Threads: part.Threads, Cost: capture.Cost{
			Setup: int64(part.SetupNs), Head: int64(part.HeadNs), Threads: int64(part.ThreadsNs), End: int64(part.EndNs),
		}}
		bytes, err := m.Fill(part, &one)
		if err != nil {
			c.Failed = append(c.Failed, capture.Failure{Item: it, Reason: kcdata.LeftOutError, Errno: unix.EIO})
			continue
		}
		if did != nil {
			did(part, bytes)
		}
		if !f.ends && n == f.last {
			one.Pieces = append(one.Pieces, endOf(uint64(it.Tgid)))
		}
		c.Recorded = append(c.Recorded, one)
		if rest := m.leftOut(part); rest != 0 { // cut
			it.Count -= min(part.Threads, it.Count)
			c.Failed = append(c.Failed, f.failure(it, rest))
		}
	}
}

// endOf gives the end of a task's container, for a task whose last part is gone.
func endOf(id uint64) []byte {
	w := kcdata.NewWriter(make([]byte, 64))
	if err := w.EndContainer(id); err != nil {
		panic(err) // 64 bytes hold a header
	}
	return w.Written()
}

func errnoOf(reason uint32) unix.Errno {
	switch reason {
	case kcdata.LeftOutNoSpace:
		return unix.ENOSPC
	case kcdata.LeftOutError:
		return unix.EIO
	}
	return 0
}
