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

	// BuildIDBudget is how long all build-ids and perf maps of one capture may take, so
	// that files do not delay a capture. One hung file may come on top.
	BuildIDBudget = 2 * time.Second
)

var errBudget = fmt.Errorf("not read: the %v for all files were spent", BuildIDBudget)

// loadInfo finds out for one capture from which files each task's code comes. One
// goroutine uses it.
type loadInfo struct {
	proc   procfs.FS
	images *image.Cache
	files  *foreign.Files
	left   time.Duration
	known  map[fileID]known // so that each file is asked once a capture
}

// fileID is a file while it is mapped.
type fileID struct {
	major, minor uint32
	inode        uint64
}

type known struct {
	build []byte
	path  string
	err   error
}

func (k *Collator) newLoadInfo(w *capture.Wants) *loadInfo {
	if w.Redact || k.KeepUserSide {
		return nil
	}
	return &loadInfo{proc: k.Proc, images: k.Images, files: k.Files, left: BuildIDBudget, known: map[fileID]known{}}
}

// loaded is what was found out about a task beside its mappings.
type loaded struct {
	perfMap string
	maps    []string // "what: reason", of the mappings
	notes   []string // of their files
	late    bool     // a later look may tell more
}

func (l *loaded) note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// task sets t.maps: as /proc has them or, if that hangs, as the stop recorded them.
func (l *loadInfo) task(t *taskBytes, maps procfs.File) {
	err := maps.Err
	if err == nil {
		err = t.parseMaps(maps, &t.load)
	}
	if err != nil {
		if !procfs.Gone(err) {
			t.load.note("maps: %v", show.WithoutPath(err))
		}
		t.maps = t.window.maps
		if why := t.window.lacks(); why != "" {
			t.load.note("maps, as the stop saw them: %s", why)
		}
	}
	t.load.maps, t.load.notes = t.load.notes, nil
	for _, at := range t.window.pieces { // they are written anew
		t.items.Remove(at)
	}
	l.fromFiles(t)
}

// fromFiles asks the mapped files, for the first time or again.
func (l *loadInfo) fromFiles(t *taskBytes) {
	t.load.notes, t.load.late = nil, false
	if len(t.maps) == 0 {
		return
	}
	l.buildIDs(t, &t.load)
	l.perfMap(t, &t.load)
}

// forget lets the files that were late be asked once more.
func (l *loadInfo) forget() {
	maps.DeleteFunc(l.known, func(_ fileID, k known) bool { return image.IsTransient(k.err) })
}

// late reports whether a later look may give another answer than this error.
func late(err error) bool { return image.IsTransient(err) || errors.Is(err, errBudget) }

// buildIDs fills in the build-ids, from the files' ELF notes.
func (l *loadInfo) buildIDs(t *taskBytes, out *loaded) {
	skipped := 0
	for i := range t.maps {
		m := &t.maps[i]
		if m.Flags&kcdata.MappingVDSO == 0 && !image.MappedFile(m) {
			continue
		}
		k := l.file(t.pid, m)
		if strings.HasPrefix(m.Path, "…") && strings.HasSuffix(k.path, strings.TrimPrefix(m.Path, "…")) {
			m.Path = k.path // another task's mapping of the file has it whole
		}
		m.BuildIDLen = uint32(copy(m.LinuxMapping.BuildID[:], k.build))
		if m.BuildIDLen > 0 {
			m.BuildID = slices.Clone(m.LinuxMapping.BuildID[:m.BuildIDLen])
		}
		if m.Flags &^= kcdata.MappingSkipped; k.err == nil {
			continue
		}
		out.late = out.late || late(k.err)
		m.Flags |= kcdata.MappingSkipped
		if skipped++; skipped <= maxReasons {
			out.note("build-id: %s: %v", m.Path, show.WithoutPath(k.err))
		}
	}
	if skipped > maxReasons {
		out.note("build-id: %d more files: not read", skipped-maxReasons)
	}
}

// file reads the build-id of a mapping's file. A file that has none, or is no ELF file,
// counts as read.
func (l *loadInfo) file(pid int, m *kcdata.Mapping) known {
	id := fileID{m.DevMajor, m.DevMinor, m.Inode}
	if id == (fileID{}) { // the vDSO: one for each size of it
		id.inode = m.End - m.Start
	}
	k, asked := l.known[id]
	if asked {
		if k.err == nil && k.path == "" {
			k.path = m.Path
		}
		return k
	}
	v, err := spend(l, func() (any, error) { return l.images.Load(image.Seen(pid), m, "build-id", buildID) })
	k = known{err: err}
	switch {
	case err == nil:
		k.build = v.([]byte)
	case errors.Is(err, elfnote.ErrNoBuildID), errors.Is(err, elfnote.ErrNotELF):
		k.err = nil
	case procfs.Gone(err), errors.Is(err, errBudget):
		return k // another task may still have it
	}
	if strings.HasPrefix(m.Path, "/") {
		k.path = m.Path
	}
	l.known[id] = k
	return k
}

// spend runs ask, which reads somebody's file, if there is time left for that.
func spend[T any](l *loadInfo, ask func() (T, error)) (T, error) {
	if l.left <= 0 {
		var zero T
		return zero, errBudget
	}
	began := time.Now()
	v, err := ask()
	l.left -= time.Since(began)
	return v, err
}
