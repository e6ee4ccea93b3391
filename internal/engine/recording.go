package engine

import (
	"slices"

	"golang.org/x/sys/unix"

	"stackshot/internal/capture"
	"stackshot/kcdata"
	"stackshot/workqueue"
)

// Recording is what one worker, or one reader of /proc, records in one try: its chain, the
// parts that it recorded, and the items that it could not record. From wake to done only
// its worker uses it, at other times only the coordinator. After a Begin with room for
// all items nothing here allocates.
type Recording struct {
	Chain  *kcdata.Chain
	Parts  []part
	Failed []capture.Failure
	spill  uint64 // bytes of chunks from other clusters' arenas
}

// part is what was recorded of one item: the bytes between two marks of the chain.
type part struct {
	Item     workqueue.Item
	from, to kcdata.Mark
	Threads  uint32
	cost     capture.Cost
}

// Begin prepares it for a try over m, with room for that many items.
func (r *Recording) Begin(m *Memory, cluster, items int) {
	r.Parts, r.Failed, r.spill = r.Parts[:0], r.Failed[:0], 0
	if cap(r.Parts) < items {
		r.Parts = make([]part, 0, items)
		r.Failed = make([]capture.Failure, 0, items)
	}
	r.Chain = m.newChain(cluster, &r.spill)
}

// Keep ends an item that began at from.
func (r *Recording) Keep(it workqueue.Item, from kcdata.Mark, threads uint32, spent capture.Cost) {
	r.Parts = append(r.Parts, part{it, from, r.Chain.Mark(), threads, spent})
}

// Fail removes what was written of an item that began at from, and notes the failure.
func (r *Recording) Fail(it workqueue.Item, from kcdata.Mark, reason uint32, errno unix.Errno) {
	r.Chain.Rewind(from)
	r.Failed = append(r.Failed, capture.Failure{Item: it, Reason: reason, Errno: errno})
}

// End adds parts and failures to the capture, and returns how much that is.
func (r *Recording) End(c *capture.Raw) (did Tally) {
	c.Failed = append(c.Failed, r.Failed...)
	for _, p := range r.Parts {
		c.Add(p.Item, p.Threads, slices.Collect(r.Chain.Span(p.from, p.to)), p.cost)
		did.Add(p.Threads, 0)
	}
	did.bytes, did.Spill = uint64(r.Chain.Len()), r.spill
	r.Chain.Close()
	return did
}

// Tally is how much one worker recorded in one try, for the file's record of its CPU.
type Tally struct {
	tasks, threads uint32
	bytes          uint64
	Spill          uint64 // bytes of chunks from other clusters' arenas
}

func (s *Tally) Into(r *kcdata.LinuxCPU) {
	r.Tasks, r.Threads, r.Bytes, r.SpillBytes = s.tasks, s.threads, s.bytes, s.Spill
}

func (s *Tally) Add(threads uint32, bytes uint64) {
	s.tasks, s.threads, s.bytes = s.tasks+1, s.threads+threads, s.bytes+bytes
}
