package snapshot

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

// windowMaps are the mappings that the stop itself recorded of a task, whose
// mmap_lock was held: with that held /proc/PID/maps would hang. They are taken
// out of the recorded bytes and written anew, with build-ids or as /proc has them.
type windowMaps struct {
	maps   []kcdata.Mapping
	walk   kcdata.LinuxMapWalk
	pieces []edit // what to cut
}

// visit takes note of an item that is of such a mapping, in the order of the
// file; others are not its business.
func (x *windowMaps) visit(it kcdata.Item) bool {
	elem, size, _ := it.Elem()
	switch {
	case it.Depth != 1:
		return false
	case it.Type == kcdata.TypeLinuxMapWalk:
		if err := kcdata.Unmarshal(it.Data, &x.walk); err != nil {
			x.walk = kcdata.LinuxMapWalk{}
		}
		return false // it stays
	case it.Of() == kcdata.TypeLinuxMapName && len(x.maps) > 0:
		x.maps[len(x.maps)-1].Path = unix.ByteSliceToString(it.Data)
	case elem == kcdata.TypeLinuxMapping && size == sizeOfMapping:
		for b := it.Data; len(b) >= size; b = b[size:] {
			var m kcdata.Mapping
			if err := kcdata.Unmarshal(b[:size], &m.LinuxMapping); err == nil {
				x.maps = append(x.maps, m)
			}
		}
	default:
		return false
	}
	x.pieces = append(x.pieces, edit{off: it.Offset, cut: itemHeader + roundUp(len(it.Data), 16)})
	return true
}

// lacks says what the stop could not tell of the executable mappings; "": it told all.
func (x *windowMaps) lacks() string {
	w := &x.walk
	var out []string
	say := func(n uint32, text string) {
		if n > 0 {
			out = append(out, fmt.Sprintf("%s: %d", text, n))
		}
	}
	say(w.Torn, "being changed")
	say(w.Found-w.Written, "without room")
	say(w.Refused, "pointers not followed, to what is not ordinary memory")
	if w.Flags != 0 && w.Flags&kcdata.MapWalkWhole == 0 {
		out = append(out, "the last ones were not reached")
	}
	return strings.Join(out, "; ")
}

// cut takes them out of the task.
func (x *windowMaps) cut(t *taskBytes) { t.edits = append(t.edits, x.pieces...) }

var sizeOfMapping = kcdata.SizeOf(&kcdata.LinuxMapping{})
