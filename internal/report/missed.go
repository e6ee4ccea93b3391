package report

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// missedTables says of which files the unwind tables were wanted and not read, how many
// user stacks lack them, and what helps; "" if none was missed.
func (v *view) missedTables() string {
	type file struct {
		path         string
		major, minor uint32
		inode        uint64
	}
	files := map[file]bool{}
	stacks, kept := 0, 0
	for _, t := range v.s.Tasks {
		for i := range t.Mappings {
			if m := &t.Mappings[i]; m.Flags&kcdata.MappingTableMissed != 0 {
				files[file{m.Path, m.DevMajor, m.DevMinor, m.Inode}] = true
			}
		}
		for _, th := range t.Threads {
			if th.UserWalk != nil && th.UserWalk.Flags&kcdata.UserTablesMissed != 0 {
				stacks++
				kept += min(1, len(th.UserBytes)+len(th.UserChain))
			}
		}
	}
	if len(files)+stacks == 0 {
		return ""
	}
	var names []string
	for f := range files {
		names = append(names, show.Clean(path.Base(f.path)))
	}
	slices.Sort(names)
	text := fmt.Sprintf("unwind tables of %s were not read", show.Count(len(files), "file"))
	if len(names) > 0 {
		text += " (" + strings.Join(atMost(alarmLimit, names, andMore), ", ") + ")"
	}
	text += fmt.Sprintf(": callers may be missing in %s", show.Count(stacks, "user stack"))
	if kept > 0 {
		text += "; `stackshot symbolize --unwind FILE` makes them anew, from the stacks' bytes, which stay in the file for that and may hold secrets"
	}
	return text
}
