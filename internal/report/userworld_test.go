package report

import (
	"fmt"
	"strings"

	"stackshot/kcdata"
)

// userWorld is what the tests know of one task's user space.
type userWorld struct {
	strs []byte
	syms []kcdata.LinuxUserSymbol
	at   map[string]uint64
	base uint64 // of its mappings: no two tasks have the same
}

func (w *world) userOf(t *kcdata.Task) *userWorld {
	u := w.user[t]
	if u == nil {
		u = &userWorld{strs: []byte{0}, at: map[string]uint64{}, base: 0x7f0000000000 + uint64(len(w.user))<<32}
		w.user[t] = u
	}
	return u
}

func (u *userWorld) str(s string) uint32 {
	if s == "" {
		return 0
	}
	u.strs = append(append(u.strs, s...), 0)
	return uint32(len(u.strs) - len(s) - 1)
}

// maps adds an executable mapping, 1 MiB for each.
func (w *world) maps(t *kcdata.Task, path string, flags uint32) {
	u := w.userOf(t)
	start := u.base + uint64(len(t.Mappings))<<24
	m := kcdata.Mapping{Path: path, BuildID: []byte{0xab, byte(len(path))}}
	m.Start, m.End, m.Offset, m.Flags = start, start+1<<20, 0x1000, flags
	if flags&(kcdata.MappingAnon|kcdata.MappingVDSO) == 0 {
		m.Inode, m.DevMajor, m.DevMinor = 7, 8, 1
	}
	t.Mappings = append(t.Mappings, m)
}

// calls gives a thread the user stack of frames, leaf first, in words: "name in
// PATH", with "name<-outer" for inlined functions and "@file.c:12" behind the
// innermost name; "? in PATH" is not named; "?" is in no mapping.
func (w *world) calls(t *kcdata.Task, th *kcdata.Thread, flags uint32, frames ...string) *kcdata.Thread {
	u := w.userOf(t)
	for _, f := range frames {
		a, ok := u.at[f]
		if !ok {
			a = u.place(t, f)
			u.at[f] = a
		}
		th.User = append(th.User, a)
		th.UserHow = append(th.UserHow, kcdata.UserFrameCFI)
	}
	if len(th.UserHow) > 0 {
		th.UserHow[0] = kcdata.UserFrameRegs
	}
	th.UserWalk = &kcdata.LinuxUserWalk{Flags: flags, Frames: uint32(len(frames)), Links: 2, Bytes: 1024}
	return th
}

// place chooses an address for a frame, and names it.
func (u *userWorld) place(t *kcdata.Task, frame string) uint64 {
	name, path, _ := strings.Cut(frame, " in ")
	a := 0xdead0000 + uint64(len(u.at))
	for _, m := range t.Mappings {
		if m.Path == path && path != "" {
			a = m.Start + 0x100*uint64(len(u.at)+1)
		}
	}
	if name == "?" {
		return a
	}
	for _, n := range strings.Split(name, "<-") {
		n, at, _ := strings.Cut(n, "@")
		file, number, _ := strings.Cut(at, ":")
		line := uint32(0)
		fmt.Sscan(number, &line)
		u.syms = append(u.syms, kcdata.LinuxUserSymbol{Addr: a, Offset: 0x10, Name: u.str(n), Module: u.str(path), File: u.str(file), Line: line})
	}
	return a
}
