package symbol

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"stackshot/internal/foreign"
	"stackshot/kcdata"
)

// perfMapPath is where perf(1) looks: the pid is the process's own idea of it.
func perfMapPath(t *kcdata.Task) string {
	pid := t.ID
	for _, th := range t.Threads {
		if n := len(th.NS); th.ID == t.ID && n > 0 {
			pid = uint64(th.NS[n-1].Tid)
		}
	}
	return fmt.Sprintf("/tmp/perf-%d.map", pid)
}

// perfNames reads a process's perf map. The map is anybody's word: it counts
// only if it is the process's own user's, or root's.
func (r *Resolver) perfNames(j *job) (names, error) {
	s := j.sources[0]
	if err := s.Process.Alive(); err != nil {
		return nil, err
	}
	where := foreign.Where{Root: s.Process.Path("root"), Path: s.Mapping.Path, NoFollow: true, MaxSize: maxPerfMap, Check: s.owns}
	v, err := r.files.LoadFrom(where, func(rd io.ReaderAt, size int64) (any, error) {
		if err := s.Process.Alive(); err != nil {
			return nil, err
		}
		return ScanPerfMap(io.NewSectionReader(rd, 0, min(size, maxPerfMap)), j.offs)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return names{}, nil // most programs have none
	}
	if err != nil {
		return nil, err
	}
	out := names{}
	for addr, f := range v.(map[uint64]Function) {
		out[addr] = []kcdata.UserFunction{{Name: f.Name, Offset: addr - f.Start}}
	}
	return out, nil
}

func (s *source) owns(st foreign.Stat) error {
	if st.UID != 0 && !slices.Contains(s.uids[:], st.UID) {
		return fmt.Errorf("%w: uid %d, the process has %d", foreign.ErrOwner, st.UID, s.uids[0])
	}
	return nil
}
