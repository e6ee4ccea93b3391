package collate

import (
	"bytes"
	"errors"
	"slices"

	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

const (
	maxMaps     = 16 << 20 // bytes of /proc/PID/maps
	MaxMappings = 4096     // executable ones of a task; the others are counted
)

// ParseMaps sets t.Maps from the text, if the text is of the program that was recorded.
func (t *TaskBytes) ParseMaps(text procfs.File, out *Loaded) error {
	b := text.Data
	if text.Truncated { // to whole lines
		b = b[:bytes.LastIndexByte(b, '\n')+1]
		out.Note("maps: more than %d bytes", maxMaps)
	}
	t.Maps = nil
	for m, err := range procfs.ParseMaps(b, procfs.PermExec) {
		if err != nil {
			t.Maps = nil
			return err
		}
		t.Maps = append(t.Maps, mappingFrom(m))
	}
	if len(t.Maps) > 0 && !t.SameProgram() {
		t.Maps = nil
		if text.Truncated {
			return ErrBehind
		}
		return ErrExec
	}
	t.MostUseful(out)
	return nil
}

var (
	ErrExec   = errors.New("of another program: the task has executed one since")
	ErrBehind = errors.New("nothing that was recorded lies in what was read of them")
)

func mappingFrom(m procfs.Mapping) kcdata.Mapping {
	r := kcdata.Mapping{Path: m.Path, LinuxMapping: kcdata.LinuxMapping{
		Start: m.Start, End: m.End, Offset: m.Offset, Inode: m.Inode, DevMajor: m.DevMajor, DevMinor: m.DevMinor,
	}}
	switch {
	case m.Path == "[vdso]":
		r.Flags |= kcdata.MappingVDSO
	case m.Inode == 0:
		r.Flags |= kcdata.MappingAnon
	}
	if m.Deleted {
		r.Flags |= kcdata.MappingDeleted
	}
	return r
}

// SameProgram says whether these mappings are of the program that the stop saw:
// a task keeps its number and start time through exec. Some thread was in one of
// them, and the executable, where it was recorded, is among them; a program may
// have copied itself to anonymous memory, of large pages.
func (t *TaskBytes) SameProgram() bool {
	exe := t.Exe.Ino == 0 || slices.ContainsFunc(t.Maps, func(m kcdata.Mapping) bool { return m.Inode == t.Exe.Ino })
	recorded := false
	for _, th := range t.Threads {
		if th.IP == 0 {
			continue
		}
		recorded = true
		if m, ok := kcdata.FindMapping(t.Maps, th.IP); ok && (exe || m.Flags&kcdata.MappingAnon != 0) {
			return true
		}
	}
	return exe && !recorded
}
