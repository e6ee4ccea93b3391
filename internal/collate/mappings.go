package collate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"stackshot/internal/procfs"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

const (
	maxMaps     = 16 << 20 // bytes of /proc/PID/maps
	maxMappings = 4096     // executable ones of a task; the others are counted
)

// parseMaps sets t.maps from the text, if the text is of the program that was recorded.
func (t *taskBytes) parseMaps(proc procfs.FS, text procfs.File, out *loaded) error {
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
	if len(t.maps) > 0 {
		if err := t.sameProgram(proc); err != nil {
			t.maps = nil
			return fmt.Errorf("whose they are is not known: %w", err)
		}
	}
	t.mostUseful(out)
	return nil
}

var (
	errExec      = errors.New("the task's executable is another one by now")
	errElsewhere = errors.New("no thread was in one of those that were read")
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

// sameProgram says why these mappings may not be of the program that the stop saw: a task
// keeps its number and start time through exec. The executable, where it was recorded, is
// among them. Or it is still that of the task: a program may have copied all its code to
// anonymous memory. And some thread was in one of them.
func (t *taskBytes) sameProgram(proc procfs.FS) error {
	if t.exe.Ino != 0 && !slices.ContainsFunc(t.maps, func(m kcdata.Mapping) bool { return m.Inode == t.exe.Ino }) {
		exe := []procfs.File{{Name: "exe", Op: procfs.OpTarget}} // after the mappings: an exec in between shows
		proc.Read(procfs.TaskDir(int(t.linux.Tgid)), exe)
		if err := exe[0].Err; err != nil {
			return fmt.Errorf("executable: %w", show.WithoutPath(err))
		}
		if string(exe[0].Data) != strconv.FormatUint(t.exe.Ino, 10) {
			return errExec
		}
	}
	recorded := false
	for _, th := range t.threads {
		if th.ip == 0 {
			continue
		}
		recorded = true
		if _, ok := kcdata.FindMapping(t.maps, th.ip); ok {
			return nil
		}
	}
	if recorded {
		return errElsewhere
	}
	return nil
}
