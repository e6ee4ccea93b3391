package snapshot

import "stackshot/kcdata"

// leftOut is the list of the file: a task once for each reason, though several
// workers had parts of it.
func (c *captured) leftOut() []kcdata.LinuxLeftOut {
	type entry struct{ tgid, reason uint32 }
	at := map[entry]int{}
	out := []kcdata.LinuxLeftOut{}
	for _, f := range c.failed {
		key := entry{uint32(f.item.Tgid), f.reason}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, kcdata.LinuxLeftOut{Tgid: key.tgid, Reason: key.reason})
		}
		out[i].Threads += f.item.Count
		if out[i].Errno == 0 {
			out[i].Errno = uint32(f.errno)
		}
	}
	return out
}

// seen counts the tasks that were recorded or left out.
func (c *captured) seen() int {
	tasks := map[int32]bool{}
	for _, r := range c.recorded {
		tasks[r.item.Tgid] = true
	}
	for _, f := range c.failed {
		tasks[f.item.Tgid] = true
	}
	return len(tasks)
}

// finishCounts separates tasks that ended on their own, which nobody misses,
// from what is left out. A task asked for by number is missed.
func (c *captured) finishCounts(asked bool) {
	kept, ended := c.failed[:0], map[int32]bool{}
	for _, f := range c.failed {
		if f.reason == kcdata.LeftOutVanished && !asked {
			ended[f.item.Tgid] = true
			continue
		}
		kept = append(kept, f)
	}
	c.failed = kept
	c.capture.Vanished += uint32(len(ended))
	c.capture.LeftOut = uint32(kcdata.LeftOutTasks(c.leftOut()))
}
