package account

import (
	"fmt"
	"slices"

	"stackshot/internal/show"
	"stackshot/kcdata"
)

// leftOutReasons are the reasons why tasks are left out, in the order of the report.
var leftOutReasons = []struct {
	code uint32
	text string
}{
	{kcdata.LeftOutMaxPause, "the pause budget was spent"},
	{kcdata.LeftOutNoSpace, "the buffer was full"},
	{kcdata.LeftOutError, "recording failed"},
	{kcdata.LeftOutVanished, "asked for, but gone"},
	{kcdata.LeftOutPanic, "the kernel panicked first"},
	{0, "for a reason this program does not know"},
}

// LeftOut says which tasks are not, or not wholly, in the file and why: one sentence for
// each reason.
func LeftOut(s *kcdata.Snapshot) []string {
	ids := map[uint32][]uint64{}
	threads := map[uint32]int{}
	for _, e := range s.LeftOut {
		code := e.Reason
		if code > kcdata.LeftOutPanic {
			code = 0
		}
		ids[code] = append(ids[code], uint64(e.Tgid))
		threads[code] += int(e.Threads)
	}
	here := map[uint64]bool{}
	for _, t := range s.Tasks {
		here[t.ID] = true
	}
	var out []string
	for _, r := range leftOutReasons {
		list := slices.Compact(slices.Sorted(slices.Values(ids[r.code]))) // earlier files have an entry for each part of a task
		if n := len(list); n > 0 {
			text := fmt.Sprintf("left out, %s: %s with %s (pid %s)", r.text, show.Count(n, "task"), show.Count(threads[r.code], "thread"), show.Ranges(list, 12))
			if parts := slices.DeleteFunc(list, func(id uint64) bool { return !here[id] }); len(parts) > 0 {
				text += fmt.Sprintf("; other threads of pid %s are here", show.Ranges(parts, 12))
			}
			out = append(out, text)
		}
	}
	if n := int(s.Capture.LeftOut); n > len(s.LeftOut) {
		out = append(out, fmt.Sprintf("left out: %s more that the file does not name", show.Count(n-len(s.LeftOut), "task")))
	}
	return out
}

// LeftOutJSON is the object of the report.
func LeftOutJSON(e *kcdata.LinuxLeftOut) show.Object {
	return show.Object{
		{"pid", e.Tgid}, {"reason", kcdata.LeftOutReason(e.Reason)}, {"errno", show.Known(e.Errno)}, {"threads", e.Threads},
	}
}

// LeftOutTakeJSON is the object of `take --json`, in which no key is optional.
func LeftOutTakeJSON(e *kcdata.LinuxLeftOut) show.Object {
	return show.Object{
		{"tgid", e.Tgid}, {"reason", kcdata.LeftOutReason(e.Reason)}, {"threads", e.Threads}, {"errno", e.Errno},
	}
}

// Warning is one warning of a capture. Its texts are clean (show.Clean).
type Warning struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Warnings returns the warnings of a list, clean; never nil.
func Warnings(list []kcdata.Warning) []Warning {
	out := make([]Warning, len(list))
	for i, w := range list {
		out[i] = Warning{show.Clean(w.Code), show.Clean(w.Text)}
	}
	return out
}

// String is the line of the report.
func (w Warning) String() string {
	if w.Code == "" {
		return "warning: " + w.Text
	}
	return "warning: " + w.Text + " (" + w.Code + ")"
}

// JSON is the object of the report, in which the code is optional.
func (w *Warning) JSON() show.Object {
	return show.Object{{"code", show.Known(w.Code)}, {"text", w.Text}}
}
