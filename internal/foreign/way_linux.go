package foreign

import (
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"stackshot/internal/mounts"
	"stackshot/internal/procfs"
)

const (
	viewFor = time.Second  // how long a mountinfo that was read is used
	ownDir  = "/proc/self" // the directory in /proc of this process
)

// views keeps the mounts as processes see them, by mount namespace and root. Reading
// mountinfo touches no mount.
type views struct {
	readers *procfs.Readers // own

	mu   sync.Mutex
	kept map[string]view // by mu
}

type view struct {
	table *mounts.Table
	until time.Time
}

func newViews(limit time.Duration) *views {
	return &views{readers: procfs.NewReaders(2, limit), kept: map[string]view{}}
}

// of gives the mounts that a process sees; dir is its directory in /proc. nil: not known.
func (v *views) of(dir string) *mounts.Table {
	key := dir
	if dir != ownDir {
		who := []procfs.File{{Name: "ns/mnt", Op: procfs.OpLink, Max: 64}, {Name: "root", Op: procfs.OpLink, Max: 4096}}
		v.readers.Read(dir, who)
		if who[0].Err != nil || who[1].Err != nil {
			return nil
		}
		key = string(who[0].Data) + " " + string(who[1].Data)
	}
	v.mu.Lock()
	defer v.mu.Unlock() // held while reading, since other helpers would read the same file
	if k, ok := v.kept[key]; ok && time.Now().Before(k.until) {
		return k.table
	}
	info := []procfs.File{{Name: "mountinfo", Max: 16 << 20}}
	if v.readers.Read(dir, info); info[0].Err != nil {
		return nil
	}
	table := mounts.Parse(info[0].Data)
	v.kept[key] = view{table, time.Now().Add(viewFor)}
	return table
}

// proc is the directory in /proc of the process whose mounts apply to w.
func (w Where) proc() string {
	if dir, ok := strings.CutSuffix(w.Root, "/root"); ok {
		return dir
	}
	if w.Link {
		dir := path.Dir(w.Path)
		if path.Base(dir) == "map_files" {
			dir = path.Dir(dir)
		}
		return dir
	}
	return ownDir
}

// way lists the file systems on the path to w, if its path is file and no symbolic link is
// followed; the last is the one that w is on. guarded: the path is known, so a symbolic
// link on it would lead elsewhere and must not be followed unasked. way touches none of
// these file systems.
func (f *Files) way(w Where, file string) (way []where, guarded bool) {
	own, theirs := f.views.of(ownDir), f.views.of(w.proc())
	if !w.Link {
		if w.Root != "" && !strings.HasSuffix(w.Root, "/root") {
			file = path.Join(w.Root, file)
		}
		for _, m := range theirs.Way(path.Clean(file)) {
			way = append(way, whereOf(m))
		}
	}
	guarded = len(way) > 0
	m := theirs.ByDevice(w.Device)
	if m == nil {
		m = own.ByDevice(w.Device)
	}
	switch {
	case m != nil:
		if !slices.ContainsFunc(way, func(w where) bool { return w.dev == m.Dev }) {
			way = append(way, whereOf(m))
		}
	case len(way) == 0 && w.Device != mounts.Device{}:
		way = append(way, where{dev: w.Device, name: "device " + w.Device.String() + ", which is mounted nowhere to be seen"})
	case len(way) == 0:
		way = append(way, where{name: "an unknown device"})
	}
	return way, guarded
}

func whereOf(m *mounts.Mount) where {
	return where{dev: m.Dev, name: m.String(), kind: m.Kind(), seen: true}
}

// refuseRemote gives the error for a way on which a file system may hang, unless
// Options.Remote allows such; it touches none of them.
func (f *Files) refuseRemote(way []where) error {
	for i := range way {
		if way[i].kind != "" && !f.options.Remote {
			return remoteError(way[i].name)
		}
	}
	return nil
}
