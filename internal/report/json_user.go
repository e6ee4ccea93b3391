package report

import (
	"encoding/hex"
	"fmt"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

type jsonUser struct {
	Addr         addr    `json:"addr"`
	FoundBy      string  `json:"found_by,omitempty"`
	Symbol       string  `json:"symbol,omitempty"`
	Offset       *uint64 `json:"offset,omitempty"`
	Module       string  `json:"module,omitempty"`
	ModuleOffset *addr   `json:"module_offset,omitempty"`
	File         string  `json:"file,omitempty"`
	Line         uint32  `json:"line,omitempty"`
	Inlined      bool    `json:"inlined,omitempty"`
}

// jsonWalk is a LinuxUserWalk.
type jsonWalk struct {
	Flags        []string `json:"flags"`
	Links        uint32   `json:"links"`
	Bytes        uint32   `json:"bytes"`
	Absent       uint32   `json:"absent"`
	Refused      uint32   `json:"refused_pages"`
	Frames       uint32   `json:"frames"`
	StackEnd     *addr    `json:"stack_end,omitempty"`
	WalkNs       uint32   `json:"walk_ns,omitempty"`
	Translations uint32   `json:"translations"`
	StopAddr     *addr    `json:"stop_addr,omitempty"`
}

type jsonMap struct {
	Start   addr     `json:"start"`
	End     addr     `json:"end"`
	Offset  uint64   `json:"offset"`
	Inode   *uint64  `json:"inode,omitempty"`
	Device  string   `json:"device,omitempty"`
	Path    string   `json:"path,omitempty"`
	BuildID string   `json:"build_id,omitempty"`
	Flags   []string `json:"flags,omitempty"`
}

// jsonUserStack is userStack with how each frame was found. unnamed counts the frames
// of which the names are left out, because the stack's are too long together.
func (v *view) jsonUserStack(t *threadView) (out []jsonUser, unnamed int) {
	names := 0
	for i := range t.User {
		how := ""
		if i < len(t.UserHow) {
			how = model.FoundBy[t.UserHow[i]]
		}
		for _, f := range v.framesAt(place{t.task, t.UserPlace(i)}) {
			if len(out) == len(t.user) {
				return out, unnamed // userStack has no more
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

func (f *userFrame) json() jsonUser {
	out := jsonUser{
		Addr: addr(f.addr), Symbol: Clean(f.Name), Module: Clean(f.modulePath()),
		File: Clean(f.File), Line: f.Line, Inlined: f.inlined,
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

func jsonWalkOf(w *kcdata.LinuxUserWalk) *jsonWalk {
	if w == nil {
		return nil
	}
	return &jsonWalk{
		Flags: append([]string{}, model.UserWalkFlags.Names(w.Flags)...), Links: w.Links, Bytes: w.Bytes, Absent: w.Absent, Refused: w.Refused, Frames: w.Frames,
		StackEnd: known(addr(w.StackEnd)), WalkNs: w.WalkNs, Translations: w.Translations, StopAddr: known(addr(w.StopAddr)),
	}
}

func newJSONMap(m *kcdata.Mapping) jsonMap {
	out := jsonMap{Start: addr(m.Start), End: addr(m.End), Offset: m.Offset, Path: Clean(m.Path), BuildID: hex.EncodeToString(m.BuildID), Flags: model.MappingFlags.Names(m.Flags)}
	if m.Inode != 0 {
		out.Inode, out.Device = &m.Inode, fmt.Sprintf("%d:%d", m.DevMajor, m.DevMinor)
	}
	return out
}
