package capture

import "stackshot/kcdata"

// Cgroups are the control groups of the capture's tasks, and their memory as it was read after the
// release.
type Cgroups struct {
	Taken  kcdata.LinuxCgroupsTaken
	Groups []Cgroup // in the order of the file
}

// Cgroup is one control group. Its record lacks the place of the path.
type Cgroup struct {
	kcdata.LinuxCgroup
	Path string
}
