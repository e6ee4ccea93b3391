package collate

import (
	"stackshot/internal/capture"
	"stackshot/kcdata"
)

// cgroupRecords are the control groups as the file has them, their paths in the string table.
func (n *names) cgroupRecords(c *capture.Cgroups) []kcdata.LinuxCgroup {
	out := make([]kcdata.LinuxCgroup, len(c.Groups))
	for i := range c.Groups {
		out[i] = c.Groups[i].LinuxCgroup
		out[i].Path = n.strings.Add(c.Groups[i].Path)
	}
	return out
}
