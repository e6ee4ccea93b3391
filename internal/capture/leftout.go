package capture

import "stackshot/kcdata"

// LeftOut is the file's list of what was left out. It has each task once for each reason,
// even if several workers had parts of the task.
func (c *Raw) LeftOut() []kcdata.LinuxLeftOut {
	type entry struct{ Tgid, Reason uint32 }
	at := map[entry]int{}
	out := []kcdata.LinuxLeftOut{}
	for _, f := range c.Failed {
		key := entry{uint32(f.Item.Tgid), f.Reason}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, kcdata.LinuxLeftOut{Tgid: key.Tgid, Reason: key.Reason})
		}
		out[i].Threads += f.Item.Count
		if out[i].Errno == 0 {
			out[i].Errno = uint32(f.Errno)
		}
	}
	return out
}

// FinishCounts takes tasks that ended on their own off the list and counts them as
// vanished. A task that was asked for by number (asked) stays on the list.
func (c *Raw) FinishCounts(asked bool) {
	kept, ended := c.Failed[:0], map[int32]bool{}
	for _, f := range c.Failed {
		if f.Reason == kcdata.LeftOutVanished && !asked {
			ended[f.Item.Tgid] = true
			continue
		}
		kept = append(kept, f)
	}
	c.Failed = kept
	c.Capture.Vanished += uint32(len(ended))
	c.Capture.LeftOut = uint32(kcdata.LeftOutTasks(c.LeftOut()))
}
