package collate

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

// windowMaps are the mappings that the stop itself recorded of a task whose mmap_lock
// was held, so that /proc/PID/maps would hang. They are taken out of the recorded bytes
// and written anew: with build-ids, or as /proc has them.
type windowMaps struct {
	maps   []kcdata.Mapping
	walk   kcdata.LinuxMapWalk
	pieces []kcdata.Position // what to cut
}

// visit takes note of an item that belongs to such a mapping, in the order of the
// file. It reports whether the item is to be cut.
func (x *windowMaps) visit(it kcdata.Item) bool {
	elem, _, _ := it.Elem()
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
	case elem == kcdata.TypeLinuxMapping:
		for _, m := range kcdata.Elements[kcdata.LinuxMapping](it) {
			x.maps = append(x.maps, kcdata.Mapping{LinuxMapping: m})
		}
	default:
		return false
	}
	x.pieces = append(x.pieces, it.Position())
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
