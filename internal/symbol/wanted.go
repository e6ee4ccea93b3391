package symbol

import (
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/image"
	"stackshot/kcdata"
)

// maxSources is how many processes are asked for one file.
const maxSources = 3

// wanted sorts the addresses of tasks by the file that names them.
type wanted struct {
	proc  string // "": the capture is of another machine, or of an earlier boot
	jobs  map[image.Key]*job
	order []*job
	spots map[*kcdata.Task][]spot
}

// spot is one place and where its name comes from.
type spot struct {
	kcdata.UserPlace
	back uint64 // 1 for a return address, which stands for the call before it
	off  uint64 // in the file
	job  *job
}

// job is one file with the places wanted in it. Constant once it is begun.
type job struct {
	key     image.Key
	kind    jobKind
	module  string
	sources []source
	offs    []uint64 // ascending
	names   *room    // of all jobs
}

type jobKind byte

const (
	jobFile jobKind = iota
	jobVDSO
	jobPerf
)

// source is one mapping of the job's file; of a perf map only its path and its
// process. Constant.
type source struct {
	image.Mapped
	task uint64    // its process, which may be reached by another thread's number
	uids [2]uint32 // real and effective, of a perf map's process
	// Of a perf map: the capture found it, or surely found none.
	listed, absent bool
}

func newWanted(local bool, proc string) *wanted {
	if !local {
		proc = ""
	}
	return &wanted{proc: proc, jobs: map[image.Key]*job{}, spots: map[*kcdata.Task][]spot{}}
}

// addTask wants the places of a task's user stacks of which not enough is known.
func (w *wanted) addTask(t *kcdata.Task, known func(*kcdata.Task, kcdata.UserPlace) bool) {
	seen := map[kcdata.UserPlace]bool{}
	for _, th := range t.Threads {
		for i := range th.User {
			if p := th.UserPlace(i); !seen[p] {
				seen[p] = true
				if known == nil || !known(t, p) {
					w.add(t, p)
				}
			}
		}
	}
}

func (w *wanted) add(t *kcdata.Task, p kcdata.UserPlace) {
	s := spot{UserPlace: p}
	if !p.Exact && p.Addr > 0 {
		s.back = 1
	}
	addr := p.Addr
	m, ok := t.MappingAt(addr - s.back)
	switch {
	case !ok || generated(m):
		s.off = addr - s.back
		s.job = w.perfMap(t)
	default:
		s.off = addr - s.back - m.Start + m.Offset
		s.job = w.file(t, m)
	}
	if s.job == nil {
		return
	}
	s.job.offs = append(s.job.offs, s.off)
	w.spots[t] = append(w.spots[t], s)
}

// generated reports a mapping of code that was made at run time. .NET maps such code
// from a file without a name, so that it can write it through another mapping.
func generated(m *kcdata.Mapping) bool {
	return m.Flags&kcdata.MappingAnon != 0 && m.Flags&kcdata.MappingVDSO == 0 ||
		strings.HasPrefix(m.Path, "/memfd:doublemapper") || strings.HasPrefix(m.Path, "/dev/zero")
}

// file is the job of a mapping's file.
func (w *wanted) file(t *kcdata.Task, m *kcdata.Mapping) *job {
	kind, module := jobFile, m.Path
	if m.Flags&kcdata.MappingVDSO != 0 {
		kind, module = jobVDSO, "[vdso]"
	}
	j := w.job(image.KeyOf(m), kind, module)
	if len(j.sources) < maxSources && !slices.ContainsFunc(j.sources, func(s source) bool { return s.task == t.ID }) {
		j.sources = append(j.sources, source{task: t.ID, Mapped: image.Mapped{Process: image.Of(t, w.proc), Mapping: *m}})
	}
	return j
}

// perfMap is the job of a task's generated code; nil if nothing can name it.
func (w *wanted) perfMap(t *kcdata.Task) *job {
	if w.proc == "" {
		return nil
	}
	path := t.PerfMap
	if path == "" {
		path = perfMapPath(t)
	}
	j := w.job(image.Key{Other: fmt.Sprintf("perf map of %d: %s", t.ID, path)}, jobPerf, "[jit]")
	if len(j.sources) == 0 {
		s := source{uids: [2]uint32{t.Linux.UID, t.Linux.EUID}, listed: t.PerfMap != ""}
		s.absent = !s.listed && t.Linux.Present&kcdata.TaskHasIDs != 0 && len(t.Mappings) > 0 && len(t.EnrichFailed) == 0
		s.Process, s.Mapping.Path = image.Of(t, w.proc), path
		j.sources = []source{s}
	}
	return j
}

func (w *wanted) job(key image.Key, kind jobKind, module string) *job {
	j := w.jobs[key]
	if j == nil {
		j = &job{key: key, kind: kind, module: module}
		w.jobs[key] = j
		w.order = append(w.order, j)
	}
	return j
}
