package snapshot

import (
	"slices"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
	"stackshot/workqueue"
)

// recording is what one worker, or one reader of /proc, makes in one try: the chain
// that it writes to, what it made of its items, and what it could not record. Its
// worker alone uses it from wake to done, and the coordinator else. Nothing here
// allocates once it is begun with room enough.
type recording struct {
	chain  *kcdata.Chain
	parts  []part
	failed []failure
	spill  uint64 // bytes of chunks from other clusters' arenas
}

// part is what was made of one item: the stream between two marks of the chain.
type part struct {
	item     workqueue.Item
	from, to kcdata.Mark
	threads  uint32
	cost     cost
}

// begin prepares it for a try over m, with room for that many items.
func (r *recording) begin(m *memory, cluster, items int) {
	r.parts, r.failed, r.spill = r.parts[:0], r.failed[:0], 0
	if cap(r.parts) < items {
		r.parts = make([]part, 0, items)
		r.failed = make([]failure, 0, items)
	}
	r.chain = m.newChain(cluster, &r.spill)
}

// keep ends an item that began at from.
func (r *recording) keep(it workqueue.Item, from kcdata.Mark, threads uint32, spent cost) {
	r.parts = append(r.parts, part{it, from, r.chain.Mark(), threads, spent})
}

// fail takes back what was written of an item that began at from.
func (r *recording) fail(it workqueue.Item, from kcdata.Mark, reason uint32, errno unix.Errno) {
	r.chain.Rewind(from)
	r.failed = append(r.failed, failure{it, reason, errno})
}

// end adds all of it to the capture. It also says how much that is.
func (r *recording) end(c *captured) (did tally) {
	c.failed = append(c.failed, r.failed...)
	for _, p := range r.parts {
		c.add(p.item, p.threads, slices.Collect(r.chain.Span(p.from, p.to)), p.cost)
		did.add(p.threads, 0)
	}
	did.bytes, did.spill = uint64(r.chain.Len()), r.spill
	r.chain.Close()
	return did
}

// tally is how much one worker recorded in one try, for the file's record of its CPU.
type tally struct {
	tasks, threads uint32
	bytes          uint64
	spill          uint64 // bytes of chunks from other clusters' arenas
}

func (s *tally) into(r *kcdata.LinuxCPU) {
	r.Tasks, r.Threads, r.Bytes, r.SpillBytes = s.tasks, s.threads, s.bytes, s.spill
}

func (s *tally) add(threads uint32, bytes uint64) {
	s.tasks, s.threads, s.bytes = s.tasks+1, s.threads+threads, s.bytes+bytes
}
