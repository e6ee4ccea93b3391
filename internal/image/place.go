package image

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"stackshot/internal/foreign"
	"stackshot/internal/mounts"
	"stackshot/kcdata"
)

// ErrNoFile answers for mappings that are of no file: generated code, memory.
var ErrNoFile = errors.New("mapping of no file")

// MappedFile says whether m is of a file that can be looked for.
func MappedFile(m *kcdata.Mapping) bool {
	return m.Flags&(kcdata.MappingAnon|kcdata.MappingVDSO) == 0 && (m.Inode != 0 || len(m.BuildID) > 0)
}

// Key is one build of one file. The build-id alone would not do: whoever gives
// his file another's build-id would name the frames of both.
type Key struct {
	Build        string
	Major, Minor uint32
	Inode        uint64
	Other        string // what tells those apart that have neither build-id nor inode
}

// KeyOf is the key of a mapping's file; of the vDSO there is one for each size.
func KeyOf(m *kcdata.Mapping) Key {
	k := Key{Build: string(m.BuildID), Major: m.DevMajor, Minor: m.DevMinor, Inode: m.Inode}
	switch {
	case m.Flags&kcdata.MappingVDSO != 0:
		return Key{Build: k.Build, Other: fmt.Sprintf("[vdso] of %d bytes", m.End-m.Start)}
	case k.Build == "" && k.Inode == 0:
		k.Other = m.Path
	}
	return k
}

// Mapped is a file as a process has it mapped. It is constant.
type Mapped struct {
	Process Process
	Mapping kcdata.Mapping
}

// Place is where such a file may be.
type Place struct {
	foreign.Where // its Check refuses what is not the file that was mapped

	// Alive is asked once the file is open: the place is worth no more than the
	// process is the one that was seen. nil: no process is involved.
	Alive func() error

	through bool // the mapping itself
}

// Places are where the file may be, best first.
func (f *Mapped) Places() []Place {
	m, proc := &f.Mapping, f.Process
	started := proc.started()
	var out []Place
	add := func(p Place) {
		p.Device = mounts.Device{Major: m.DevMajor, Minor: m.DevMinor}
		p.Check = func(st foreign.Stat) error { return p.is(f, st, started) }
		out = append(out, p)
	}
	named := strings.HasPrefix(m.Path, "/") && m.Flags&kcdata.MappingDeleted == 0
	if proc.Alive() == nil {
		if named {
			add(Place{Where: foreign.Where{Root: proc.Path("root"), Path: m.Path}, Alive: proc.Alive})
		}
		// map_files takes the mmap_lock that a hung process may hold: it comes
		// after the path, and not at all where the stop saw that lock held.
		held := m.Flags&kcdata.MappingInWindow != 0
		if !held {
			at := proc.Path(fmt.Sprintf("map_files/%x-%x", m.Start, m.End))
			add(Place{Where: foreign.Where{Path: at, Link: true}, Alive: proc.Alive, through: true})
		}
		if held || !named {
			add(Place{Where: foreign.Where{Path: proc.Path("exe"), Link: true}, Alive: proc.Alive})
		}
	}
	if named {
		add(Place{Where: foreign.Where{Path: m.Path}})
	}
	return out
}

// is says why a file is not the one that was mapped. What a build-id can tell is
// left to it: device numbers differ between maps and stat on some file systems.
func (p *Place) is(f *Mapped, st foreign.Stat, started int64) error {
	m := &f.Mapping
	same := m.Inode == st.Inode && (p.through || m.DevMajor == st.DevMajor && m.DevMinor == st.DevMinor)
	switch {
	case p.through && !same:
		return fmt.Errorf("%w: inode %d is mapped there now, not %d", foreign.ErrOther, st.Inode, m.Inode)
	case len(m.BuildID) > 0:
		return nil
	case f.Process.Proc == "":
		return fmt.Errorf("%w: without a build-id a file of another machine cannot be known again", foreign.ErrOther)
	case !same:
		return fmt.Errorf("%w: inode %d:%d/%d, mapped was %d:%d/%d", foreign.ErrOther, st.DevMajor, st.DevMinor, st.Inode, m.DevMajor, m.DevMinor, m.Inode)
	case p.Alive == nil && (started == 0 || st.Ctime > started):
		return fmt.Errorf("%w: no build-id, and the file was changed since the process began", foreign.ErrOther)
	}
	return nil
}

// SameBuild says why a file's build-id is not the wanted one; "" wants none. Of a
// longer one than a record holds, only what it holds counts.
func SameBuild(want string, id []byte) error {
	n := min(len(id), len(kcdata.LinuxMapping{}.BuildID))
	if want == "" || bytes.Equal(id, []byte(want)) || string(id[:n]) == want {
		return nil
	}
	has := "none"
	if len(id) > 0 {
		has = hex.EncodeToString(id)
	}
	return fmt.Errorf("%w: build-id %s, mapped was %x", foreign.ErrOther, has, want)
}
