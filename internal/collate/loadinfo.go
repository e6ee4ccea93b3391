package collate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"stackshot/internal/capture"
	"stackshot/internal/elfnote"
	"stackshot/internal/foreign"
	"stackshot/internal/image"
	"stackshot/internal/procfs"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Bounds of the load information.
const (
	maxReasons = 4 // unread files of a task that are named, each with the reason

	// BuildIDBudget is what all build-ids and perf maps of one capture may cost:
	// a capture is not delayed by files. One hung file may come on top.
	BuildIDBudget = 2 * time.Second
)

var errBudget = fmt.Errorf("not read: the %v for all files were spent", BuildIDBudget)

// loadInfo finds out which files' code a task runs, for one capture. Used by one
// goroutine.
type loadInfo struct {
	images *image.Cache
	files  *foreign.Files
	Left   time.Duration
	Known  map[FileID]Known // so that each file is asked once a capture
}

// FileID is a file while it is mapped.
type FileID struct {
	Major, Minor uint32
	Inode        uint64
}

type Known struct {
	Build []byte
	Path  string
	err   error
}

func (k *Collator) NewLoadInfo(w *capture.Wants) *loadInfo {
	if w.Redact || k.AsTaken {
		return nil
	}
	return &loadInfo{images: k.Images, files: k.Files, Left: BuildIDBudget, Known: map[FileID]Known{}}
}

// Loaded is what was found out of a task beside its mappings.
type Loaded struct {
	perfMap string
	Maps    []string // "what: reason", of the mappings
	Notes   []string // of their files
	late    bool     // a later look may tell more
}

func (l *Loaded) Note(format string, args ...any) {
	l.Notes = append(l.Notes, fmt.Sprintf(format, args...))
}

// Task sets t.Maps: as /proc has them or, where that hangs, as the stop recorded
// them.
func (l *loadInfo) Task(t *TaskBytes, maps procfs.File) {
	err := maps.Err
	if err == nil {
		err = t.ParseMaps(maps, &t.Load)
	}
	if err != nil {
		if !procfs.Gone(err) {
			t.Load.Note("maps: %v", show.WithoutPath(err))
		}
		t.Maps = t.window.maps
		if why := t.window.Lacks(); why != "" {
			t.Load.Note("maps, as the stop saw them: %s", why)
		}
	}
	t.Load.Maps, t.Load.Notes = t.Load.Notes, nil
	for _, at := range t.window.pieces { // they are written anew
		t.Items.Remove(at)
	}
	l.fromFiles(t)
}

// fromFiles asks the mapped files, for the first time or again.
func (l *loadInfo) fromFiles(t *TaskBytes) {
	t.Load.Notes, t.Load.late = nil, false
	if len(t.Maps) == 0 {
		return
	}
	l.buildIDs(t, &t.Load)
	l.perfMap(t, &t.Load)
}

// forget lets the files that were late be asked once more.
func (l *loadInfo) forget() {
	maps.DeleteFunc(l.Known, func(_ FileID, k Known) bool { return image.IsTransient(k.err) })
}

// late reports whether a later look may give another answer than this error.
func late(err error) bool { return image.IsTransient(err) || errors.Is(err, errBudget) }

// buildIDs fills in the build-ids, from the files' ELF notes.
func (l *loadInfo) buildIDs(t *TaskBytes, out *Loaded) {
	skipped := 0
	for i := range t.Maps {
		m := &t.Maps[i]
		if m.Flags&kcdata.MappingVDSO == 0 && !image.MappedFile(m) {
			continue
		}
		k := l.file(int(t.Linux.Tgid), m)
		if strings.HasPrefix(m.Path, "…") && strings.HasSuffix(k.Path, strings.TrimPrefix(m.Path, "…")) {
			m.Path = k.Path // another task's mapping of the file has it whole
		}
		m.BuildIDLen = uint32(copy(m.LinuxMapping.BuildID[:], k.Build))
		if m.BuildIDLen > 0 {
			m.BuildID = slices.Clone(m.LinuxMapping.BuildID[:m.BuildIDLen])
		}
		if m.Flags &^= kcdata.MappingSkipped; k.err == nil {
			continue
		}
		out.late = out.late || late(k.err)
		m.Flags |= kcdata.MappingSkipped
		if skipped++; skipped <= maxReasons {
			out.Note("build-id: %s: %v", m.Path, show.WithoutPath(k.err))
		}
	}
	if skipped > maxReasons {
		out.Note("build-id: %d more files: not read", skipped-maxReasons)
	}
}

// file asks a mapping's file for its build-id. A file that has none, or is no
// ELF file, was read all the same.
func (l *loadInfo) file(pid int, m *kcdata.Mapping) Known {
	id := FileID{m.DevMajor, m.DevMinor, m.Inode}
	if id == (FileID{}) { // the vDSO: one for each size of it
		id.Inode = m.End - m.Start
	}
	k, asked := l.Known[id]
	if asked {
		if k.err == nil && k.Path == "" {
			k.Path = m.Path
		}
		return k
	}
	v, err := spend(l, func() (any, error) { return l.images.Load(pid, m, "build-id", buildID) })
	k = Known{err: err}
	switch {
	case err == nil:
		k.Build = v.([]byte)
	case errors.Is(err, elfnote.ErrNoBuildID), errors.Is(err, elfnote.ErrNotELF):
		k.err = nil
	case procfs.Gone(err), errors.Is(err, errBudget):
		return k // another task may still have it
	}
	if strings.HasPrefix(m.Path, "/") {
		k.Path = m.Path
	}
	l.Known[id] = k
	return k
}

// spend runs ask, which reads somebody's file, if there is time left for that.
func spend[T any](l *loadInfo, ask func() (T, error)) (T, error) {
	if l.Left <= 0 {
		var zero T
		return zero, errBudget
	}
	began := time.Now()
	v, err := ask()
	l.Left -= time.Since(began)
	return v, err
}
