package snapshot

import (
	"golang.org/x/sys/unix"

	"stackshot/kcdata"
	"stackshot/workqueue"
)

// notRecorded lists what was taken or queued, and not recorded.
func (m *memory) notRecorded(c *captured) {
	c.queueFull = m.queue.Refused() > 0
	untaken(c, m.queue)
	inFlight(c, m.queue)
}

// untaken lists what the workers left in the queues.
func untaken(c *captured, q *workqueue.Queues) {
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
func inFlight(c *captured, q *workqueue.Queues) {
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

// use says how much of the memory was used.
func (m *memory) use(c *captured) {
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
