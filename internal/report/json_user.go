package report

import (
	"fmt"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// jsonFrame is a frame of a kernel or a user stack. It is a struct, not a show.Object:
// there are many frames, and encoding/json is faster with structs.
type jsonFrame struct {
	Addr         addr    `json:"addr"`
	FoundBy      string  `json:"found_by,omitempty"` // of a user frame, see model.FoundBy
	Symbol       string  `json:"symbol,omitempty"`
	Offset       *uint64 `json:"offset,omitempty"`
	Module       string  `json:"module,omitempty"`
	ModuleOffset *addr   `json:"module_offset,omitempty"`
	File         string  `json:"file,omitempty"`
	Line         uint32  `json:"line,omitempty"`
	Inlined      bool    `json:"inlined,omitempty"`
}

// jsonUserStack is userStack with the way in which each frame was found. unnamed counts the
// frames whose names are left out, because the names of the stack are too long together.
func (v *view) jsonUserStack(t *threadView) (out []jsonFrame, unnamed int) {
	names := 0
	for i := range t.User {
		how := ""
		if i < len(t.UserHow) {
			how = model.FoundBy[t.UserHow[i]]
		}
		for _, f := range v.framesAt(place{t.task, t.UserPlace(i)}) {
			if len(out) == len(t.user) {
				return out, unnamed // userStack has reached its limit
			}
			j := f.json()
			if names += len(j.Symbol) + len(j.Module) + len(j.File); names > maxThreadNames {
				j.Symbol, j.Module, j.File = "", "", ""
				unnamed++
			}
			j.FoundBy = how
			out = append(out, j)
		}
	}
	return out, unnamed
}

func (f *userFrame) json() jsonFrame {
	out := jsonFrame{
		Addr: addr(f.addr), Symbol: show.Clean(f.Name), Module: show.Clean(f.modulePath()),
		File: show.Clean(f.File), Line: f.Line, Inlined: f.inlined,
	}
	if f.Name != "" {
		out.Offset = &f.Offset
	}
	if off, ok := f.fileOffset(); ok {
		o := addr(off)
		out.ModuleOffset = &o
	}
	return out
}

func jsonWalk(w *kcdata.LinuxUserWalk) show.Object {
	return show.Object{
		{"flags", append([]string{}, model.UserWalkFlags.Names(w.Flags)...)}, {"links", w.Links}, {"bytes", w.Bytes}, {"absent", w.Absent},
		{"refused_pages", w.Refused}, {"frames", w.Frames}, {"stack_end", show.Known(addr(w.StackEnd))},
		{"walk_ns", show.Known(w.WalkNs)}, {"translations", w.Translations}, {"stop_addr", show.Known(addr(w.StopAddr))},
	}
}

func jsonMapping(m kcdata.Mapping) show.Object {
	var device *string
	if m.Inode != 0 {
		device = show.Known(fmt.Sprintf("%d:%d", m.DevMajor, m.DevMinor))
	}
	return show.Object{
		{"start", addr(m.Start)}, {"end", addr(m.End)}, {"offset", m.Offset}, {"inode", show.Known(m.Inode)}, {"device", device},
		{"path", cleaned(m.Path)}, {"build_id", hexText(m.BuildID)}, {"flags", model.MappingFlags.Names(m.Flags)},
	}
}
