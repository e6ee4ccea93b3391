package engine

import (
	"golang.org/x/sys/unix"

	"stackshot/internal/capture"
	"stackshot/kcdata"
)

// NotRecorded lists what is not recorded: items that nobody took from the queues, and
// items of a worker that took them and is still away.
func (m *Memory) NotRecorded(c *capture.Raw) {
	c.QueueFull = m.Queue.Refused() > 0
	reason := uint32(kcdata.LeftOutMaxPause)
	if c.RanShort {
		reason = kcdata.LeftOutNoSpace
	}
	for it := range m.Queue.Left() {
		c.Failed = append(c.Failed, capture.Failure{Item: it, Reason: reason})
	}
	known := map[uint32]bool{} // by census index
	for _, r := range c.Recorded {
		known[r.Item.Index] = true
	}
	for _, f := range c.Failed {
		known[f.Item.Index] = true
	}
	for it := range m.Queue.All() {
		if !known[it.Index] {
			c.Failed = append(c.Failed, capture.Failure{Item: it, Reason: kcdata.LeftOutError, Errno: unix.ETIMEDOUT})
		}
	}
}

// Use says how much of the memory was used.
func (m *Memory) Use(c *capture.Raw) {
	c.Capture.BufferSize = uint64(len(m.Data))
	for i := range m.Alloc.Clusters() {
		s := m.Alloc.Stats(i)
		c.Capture.BufferUsed += s.Used
		c.Capture.Overhead += s.Overhead
		c.Arenas = append(c.Arenas, kcdata.LinuxArena{
			Cluster: uint32(i), Entries: uint32(s.Entries), Size: s.Size, Used: s.Used, SpillOut: s.Taken,
			SpillIn: s.Spill, FreedSize: s.Overhead + s.Reused, Reused: s.Reused, Overhead: s.Overhead,
			Allocs: s.Allocs, Refused: s.Refused,
		})
	}
	if err := m.Alloc.Err(); err != nil {
		c.Warn("arena", err.Error())
	}
	if !m.Locked {
		c.Warn("memory_not_locked", "the buffers could not be locked in memory (CAP_IPC_LOCK, RLIMIT_MEMLOCK)")
	}
}
