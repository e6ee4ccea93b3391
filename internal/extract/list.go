package extract

import (
	"errors"
	"time"

	"stackshot/internal/account"
	"stackshot/internal/panicregion"
	"stackshot/internal/show"
)

var outcomes = map[uint32]string{
	panicregion.InProgress: "did not end", panicregion.Whole: "whole", panicregion.NoRoom: "no room", panicregion.OutOfTime: "out of time",
}

// Line says what a region is, how it stands, and why it cannot be used, if it cannot.
func (r *Region) Line() string {
	var out show.Parts
	if r.Static == nil {
		out.Add("head at %#x: %v", r.Phys, r.Err)
		return out.Join(", ")
	}
	s := r.Static
	out.Add("%s", r.kind())
	out.Add("boot %s", BootName(s.BootID))
	out.If(s.Generation > 0, "region %d generation %d", s.Region, s.Generation)
	out.If(s.Written > 0, "written %s", time.Unix(0, int64(s.Written)).UTC().Format(time.RFC3339))
	if w := r.Walk; w != nil && w.Ran() {
		out.Add("%s", outcomes[w.Outcome])
		out.Add("%s with %s", show.Count(int(w.Tasks), "task"), show.Count(int(w.Threads), "thread"))
		out.Add("%d bytes", w.Bytes)
		out.If(w.Nested > 0, "%d later ones found it taken", w.Nested)
		out.If(w.Lost > 0, "%d SysRqs before it were not saved", w.Lost)
	}
	if r.Err != nil {
		out.Add("not usable: %v", r.Err)
	}
	return out.Join(", ")
}

func (r *Region) kind() string {
	switch {
	case errors.Is(r.Err, ErrForeign):
		return "of another boot"
	case r.Static.Kind == panicregion.KindLive:
		return "a capture that was running"
	case r.Walk == nil || !r.Walk.Ran():
		return "memory of stackshot arm"
	case r.Walk.Hook == panicregion.HookSysrq:
		return "SysRq " + show.Clean(string(rune(r.Walk.Key)))
	case r.Walk.Hook == panicregion.HookCrash:
		return "crash"
	}
	return "panic: " + r.Walk.Message()
}

// Title says what the file is of.
func (r *Result) Title() string {
	if r.Panic == nil {
		return "a capture that was running when the kernel panicked"
	}
	return account.TitleOf(r.Panic)
}
