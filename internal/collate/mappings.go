package collate

import (
	"bytes"

	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

const (
	maxMaps     = 16 << 20 // bytes of /proc/PID/maps
	maxMappings = 4096     // executable ones of a task; the others are counted
)

// parseMaps sets t.maps from the text.
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
	t.mostUseful(out)
	return nil
}

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
