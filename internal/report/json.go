package report

import (
	"encoding/hex"
	"io"

	"stackshot/internal/account"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// JSONVersion is the version of the form that JSON writes and
// docs/report-json.md describes. Keys are added without raising it.
const JSONVersion = 1

// JSON writes the snapshot as one JSON object. Every thread is written out,
// nothing is folded; Options.Pids and ShowSelf choose as in Text. Errors are
// the writer's.
func JSON(w io.Writer, s *kcdata.Snapshot, o Options) error {
	o.ShowIdle = true
	v := newView(s, o)
	j := newJSONWriter(w, o.MaxBytes)
	j.members("{", append(v.document(), [2]any{"tasks", v.jsonTasks(j)}), "")
	j.members(",", show.Object{{"threads_left_out", show.Known(j.Threads)}, {"mappings_left_out", show.Known(j.Mappings)}}, "")
	j.printf("\n}\n")
	return j.flush(j.w)
}

// addr is an address or a 64-bit id.
type addr = show.Hex

// document is what stands before the tasks.
func (v *view) document() show.Object {
	s := v.s
	return show.Object{
		{"format", "stackshot-report"}, {"version", JSONVersion},
		{"machine", account.MachineJSON(s)}, {"capture", account.CaptureJSON(s)}, {"atomicity", account.AtomicityJSON(s)},
		{"cpus", show.List(s.CPUs, account.CPUJSON)},
		{"alarms", append([]string{}, v.alarms()...)},
		{"warnings", show.List(account.Warnings(s.Warnings), (*account.Warning).JSON)},
		{"problems", cleanAll(s.Problems)},
		{"left_out", show.List(s.LeftOut, account.LeftOutJSON)},
		{"modules", show.List(s.Modules, func(m *kcdata.Module) show.Object {
			return show.Object{{"name", show.Clean(m.Name)}, {"addr", addr(m.Addr)}, {"size", m.Size}, {"build_id", hexText(m.BuildID)}}
		})},
		{"not_named", cleanAll(v.o.Skipped)}, {"counts", v.counts},
	}
}

// hexText is nil for no bytes.
func hexText(b []byte) *string { return show.Known(hex.EncodeToString(b)) }

// cleaned is nil for no name.
func cleaned(name string) *string { return show.Known(show.Clean(name)) }

func cleanAll(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = show.Clean(s)
	}
	return out
}
