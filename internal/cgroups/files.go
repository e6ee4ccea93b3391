package cgroups

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// file is one file of a group, and where its value goes.
type file struct {
	name string
	op   procfs.Op
	take func(*group, []byte) error
}

// amount and limit take files of one number.
func amount(bit uint32, to func(*group) *uint64) func(*group, []byte) error {
	return one(parseAmount, bit, to)
}

func limit(bit uint32, to func(*group) *uint64) func(*group, []byte) error {
	return one(parseLimit, bit, to)
}

func one(parse func([]byte) (uint64, error), bit uint32, to func(*group) *uint64) func(*group, []byte) error {
	return func(g *group, b []byte) error {
		n, err := parse(b)
		if err == nil {
			*to(g), g.Present = n, g.Present|bit
		}
		return err
	}
}

// The files of a group. The first one is the directory itself. The last one is in every group: if it
// is not there, the group has been removed.
var (
	theGroup = file{".", procfs.OpInode, amount(kcdata.CgroupHasID, func(g *group) *uint64 { return &g.ID })}
	theEnd   = file{"cgroup.procs", procfs.OpInode, func(*group, []byte) error { return nil }}

	filesOf = map[uint16][]file{
		1: {theGroup,
			{"memory.usage_in_bytes", procfs.OpRead, amount(kcdata.CgroupHasCurrent, func(g *group) *uint64 { return &g.Current })},
			{"memory.limit_in_bytes", procfs.OpRead, limit(kcdata.CgroupHasMax, func(g *group) *uint64 { return &g.Max })},
			{"memory.soft_limit_in_bytes", procfs.OpRead, limit(kcdata.CgroupHasSoft, func(g *group) *uint64 { return &g.Soft })},
			{"memory.memsw.usage_in_bytes", procfs.OpRead, amount(kcdata.CgroupHasSwap, func(g *group) *uint64 { return &g.Swap })},
			{"memory.memsw.limit_in_bytes", procfs.OpRead, limit(kcdata.CgroupHasSwapMax, func(g *group) *uint64 { return &g.SwapMax })},
			{"memory.failcnt", procfs.OpRead, amount(kcdata.CgroupHasFails, func(g *group) *uint64 { return &g.MaxEvents })},
			{"memory.oom_control", procfs.OpRead, (*group).oomControl},
			{"memory.use_hierarchy", procfs.OpRead, (*group).useHierarchy}, theEnd},
		2: {theGroup,
			{"memory.current", procfs.OpRead, amount(kcdata.CgroupHasCurrent, func(g *group) *uint64 { return &g.Current })},
			{"memory.max", procfs.OpRead, limit(kcdata.CgroupHasMax, func(g *group) *uint64 { return &g.Max })},
			{"memory.high", procfs.OpRead, limit(kcdata.CgroupHasHigh, func(g *group) *uint64 { return &g.High })},
			{"memory.swap.current", procfs.OpRead, amount(kcdata.CgroupHasSwap, func(g *group) *uint64 { return &g.Swap })},
			{"memory.swap.max", procfs.OpRead, limit(kcdata.CgroupHasSwapMax, func(g *group) *uint64 { return &g.SwapMax })},
			{"memory.events", procfs.OpRead, (*group).events},
			{"memory.pressure", procfs.OpRead, (*group).pressure}, theEnd},
	}
)

// maxFile is the size up to which a file is read, in bytes.
const maxFile = 4 << 10

// readable are the files for procfs.FS.Read.
func readable(files []file) []procfs.File {
	out := make([]procfs.File, len(files))
	for i, f := range files {
		out[i] = procfs.File{Name: f.name, Op: f.op, Max: maxFile}
	}
	return out
}

func (g *group) oomControl(b []byte) error {
	return parseCounts(b, func(name string, n uint64) {
		switch {
		case name == "oom_kill":
			g.OOMKill, g.Present = n, g.Present|kcdata.CgroupHasOOMKill
		case name == "under_oom":
			g.Present |= kcdata.CgroupHasOOM
			g.flag(kcdata.CgroupUnderOOM, n != 0)
		case name == "oom_kill_disable":
			g.flag(kcdata.CgroupNoOOMKill, n != 0)
		}
	})
}

func (g *group) flag(bit uint32, set bool) {
	if set {
		g.Flags |= bit
	}
}

func (g *group) useHierarchy(b []byte) error {
	n, err := parseAmount(b)
	g.flat = err == nil && n == 0
	return err
}

func (g *group) events(b []byte) error {
	return parseCounts(b, func(name string, n uint64) {
		switch name {
		case "low":
			g.LowEvents = n
		case "high":
			g.HighEvents = n
		case "max":
			g.MaxEvents, g.Present = n, g.Present|kcdata.CgroupHasEvents
		case "oom":
			g.OOMEvents = n
		case "oom_kill":
			g.OOMKill, g.Present = n, g.Present|kcdata.CgroupHasOOMKill
		case "oom_group_kill":
			g.OOMGroupKill, g.Present = n, g.Present|kcdata.CgroupHasGroupKill
		}
	})
}

func (g *group) pressure(b []byte) error {
	some, full, err := parsePressure(b)
	if err != nil {
		return err
	}
	g.Present |= kcdata.CgroupHasPressure
	g.SomeAvg10, g.SomeAvg60, g.SomeTotalUs = some.avg10, some.avg60, some.totalUs
	g.FullAvg10, g.FullAvg60, g.FullTotalUs = full.avg10, full.avg60, full.totalUs
	return nil
}

// fill takes what was read of a group's files.
func (g *group) fill(files []file, read []procfs.File) {
	for i := range files {
		err := read[i].Err
		if err == nil {
			err = files[i].take(g, read[i].Data)
		}
		switch {
		case err == nil, errors.Is(err, unix.EOPNOTSUPP):
		case errors.Is(err, fs.ErrNotExist) && files[i].name != theGroup.name && files[i].name != theEnd.name:
			// this kernel or group does not have the file
		default:
			g.fail(err)
		}
	}
}

// fail notes why something is missing. What makes the others moot counts.
func (g *group) fail(err error) {
	why, errno := outcome(err)
	if g.Outcome == kcdata.CgroupRead || why == kcdata.CgroupGone {
		g.Outcome, g.Errno = why, uint32(errno)
	}
	g.hung = g.hung || errors.Is(err, procfs.ErrTimeout) || errors.Is(err, procfs.ErrExhausted)
}

func outcome(err error) (uint16, unix.Errno) {
	var errno unix.Errno
	switch errors.As(err, &errno); {
	case errors.Is(err, procfs.ErrTimeout), errors.Is(err, procfs.ErrExhausted), errors.Is(err, procfs.ErrClosed):
		return kcdata.CgroupLate, unix.ETIMEDOUT
	case errors.Is(err, ErrSyntax):
		return kcdata.CgroupFailed, unix.EINVAL
	case errno == unix.ENOENT, errno == unix.ENODEV:
		return kcdata.CgroupGone, errno
	case errno == unix.EACCES, errno == unix.EPERM:
		return kcdata.CgroupDenied, errno
	}
	return kcdata.CgroupFailed, errno
}
