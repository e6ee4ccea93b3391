package snapshot

import (
	"golang.org/x/sys/unix"

	"stackshot/kcdata"
	"stackshot/workqueue"
)

// fromQueues lists what was taken or queued, and not recorded.
func (c *captured) fromQueues(q *workqueue.Queues) {
	c.queueFull = q.Refused() > 0
	c.untaken(q)
	c.inFlight(q)
}

// untaken lists what the workers left in the queues.
func (c *captured) untaken(q *workqueue.Queues) {
	reason := uint32(kcdata.LeftOutMaxPause)
	if c.ranShort {
		reason = kcdata.LeftOutNoSpace
	}
	for it := range q.Left() {
		c.failed = append(c.failed, failure{item: it, reason: reason})
	}
}

// inFlight lists what a worker took and never brought back, because it is
// still away.
func (c *captured) inFlight(q *workqueue.Queues) {
	known := map[uint32]bool{}
	for _, r := range c.recorded {
		known[r.item.Index] = true
	}
	for _, f := range c.failed {
		known[f.item.Index] = true
	}
	for it := range q.All() {
		if !known[it.Index] {
			c.failed = append(c.failed, failure{item: it, reason: kcdata.LeftOutError, errno: unix.ETIMEDOUT})
		}
	}
}

// fromMemory says how much of the memory was used.
func (c *captured) fromMemory(m *memory) {
	total := m.alloc.Total()
	c.capture.BufferSize = uint64(len(m.data))
	c.capture.BufferUsed = total.Used
	c.capture.Overhead = total.Overhead
	c.arenas = arenasOf(m)
	if err := m.alloc.Err(); err != nil {
		c.warn("arena", err.Error())
	}
	if !m.locked {
		c.warn("memory_not_locked", "the buffers could not be locked in memory (CAP_IPC_LOCK, RLIMIT_MEMLOCK)")
	}
}

// arenasOf describes the memory of each cluster.
func arenasOf(m *memory) []kcdata.LinuxArena {
	var out []kcdata.LinuxArena
	for i := range m.alloc.Clusters() {
		s := m.alloc.Stats(i)
		out = append(out, kcdata.LinuxArena{
			Cluster: uint32(i), Entries: uint32(s.Entries), Size: s.Size, Used: s.Used, SpillOut: m.alloc.SpillBy(i),
			SpillIn: s.Spill, FreedSize: s.Overhead + s.Reused, Reused: s.Reused, Overhead: s.Overhead,
			Allocs: s.Allocs, Refused: s.Refused,
		})
	}
	return out
}
