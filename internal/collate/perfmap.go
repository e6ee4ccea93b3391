package collate

import (
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/foreign"
	"stackshot/internal/procfs"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// perfMap looks for the file in which a just-in-time compiler names its code:
// /tmp/perf-PID.map in the task's own view, made by the task's own user.
func (l *loadInfo) perfMap(t *taskBytes, out *loaded) {
	if !slices.ContainsFunc(t.maps, generated) || t.linux.Present&kcdata.TaskHasIDs == 0 {
		return
	}
	path := fmt.Sprintf("/tmp/perf-%d.map", t.innerTgid())
	where := foreign.Where{
		Root: fmt.Sprintf("/proc/%d/root", t.pid), Path: path, NoFollow: true, Owner: &t.linux.EUID,
	}
	switch _, err := spend(l, func() (foreign.Stat, error) { return l.files.Stat(where) }); {
	case err == nil:
		out.perfMap = path
	case !procfs.Gone(err):
		out.late = out.late || late(err)
		out.note("perf map: %s: %v", path, show.WithoutPath(err))
	}
}

// generated says whether a mapping may be a just-in-time compiler's.
func generated(m kcdata.Mapping) bool {
	if m.Flags&kcdata.MappingAnon != 0 {
		return m.Path != "[vsyscall]" && m.Path != "[uprobes]"
	}
	return strings.HasPrefix(m.Path, "/memfd:") || strings.HasPrefix(m.Path, "/dev/zero")
}

// innerTgid is the task's number in its own pid namespace.
func (t *taskBytes) innerTgid() uint32 {
	for _, th := range t.threads {
		if th.id == uint64(t.linux.Tgid) && th.inner != 0 {
			return th.inner
		}
	}
	return t.linux.Tgid
}
