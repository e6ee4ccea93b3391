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
	maxMappings = 4096     // executable ones of a task; the others are counted
)

// parseMaps sets t.maps from the text, if the text is of the program that was recorded.
func (t *taskBytes) parseMaps(text procfs.File, out *loaded) error {
	b := text.Data
	if text.Truncated { // to whole lines
		b = b[:bytes.LastIndexByte(b, '\n')+1]
		out.note("maps: more than %d bytes", maxMaps)
	}
	t.maps = nil
	for m, err := range procfs.ParseMaps(b, procfs.PermExec) {
		if err != nil {
			t.maps = nil
			return err
		}
		t.maps = append(t.maps, mappingFrom(m))
	}
	if len(t.maps) > 0 && !t.sameProgram() {
		t.maps = nil
		if text.Truncated {
			return errBehind
		}
		return errExec
	}
	t.mostUseful(out)
	return nil
}

var (
	errExec   = errors.New("of another program: the task has executed one since")
	errBehind = errors.New("nothing that was recorded lies in what was read of them")
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

// sameProgram says whether these mappings are of the program that the stop saw:
// a task keeps its number and start time through exec. Some thread was in one of
// them, and the executable, where it was recorded, is among them; a program may
// have copied itself to anonymous memory, of large pages.
func (t *taskBytes) sameProgram() bool {
	exe := t.exe.Ino == 0 || slices.ContainsFunc(t.maps, func(m kcdata.Mapping) bool { return m.Inode == t.exe.Ino })
	recorded := false
	for _, th := range t.threads {
		if th.ip == 0 {
			continue
		}
		recorded = true
		if m, ok := kcdata.FindMapping(t.maps, th.ip); ok && (exe || m.Flags&kcdata.MappingAnon != 0) {
			return true
		}
	}
	return exe && !recorded
}
