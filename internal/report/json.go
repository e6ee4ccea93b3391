package report

import (
	"encoding/hex"
	"io"

	"stackshot/internal/account"
	"stackshot/internal/alarm"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// JSONVersion is the version of the form that JSON writes and
// docs/report-json.md describes. Keys are added without raising it.
const JSONVersion = 1

// JSON writes the snapshot as one JSON object. It writes every thread and folds
// nothing; Options.Only and ShowSelf choose as in Text. Errors: the writer's, *CutError.
func JSON(w io.Writer, s *kcdata.Snapshot, o Options) error {
	o.ShowIdle = true // nothing is folded
	v := newView(s, o)
	j := newJSONWriter(w, o.MaxBytes)
	tasks := fitting(j, v.tasks, func(t *taskView) show.Object { return v.jsonTask(j, t) }, func(t *taskView) {
		j.Threads += t.shown
		j.Mappings += len(t.Mappings)
	})
	j.Document(func() show.Object { return append(v.document(), [2]any{"tasks", tasks}) }, func() show.Object {
		return show.Object{{"threads_left_out", show.Known(j.Threads)}, {"mappings_left_out", show.Known(j.Mappings)}}
	})
	return j.flush(j.W)
}

// addr is an address or a 64-bit id.
type addr = show.Hex

// document holds the members before the tasks.
func (v *view) document() show.Object {
	s := v.s
	return show.Object{
		{"format", "stackshot-report"}, {"version", JSONVersion},
		{"machine", account.MachineJSON(s)}, {"capture", account.CaptureJSON(s)}, {"panic", account.PanicJSON(s)}, {"atomicity", account.AtomicityJSON(s)},
		{"files", account.FilesJSON(s.FilesTaken)}, {"cgroups", account.CgroupsJSON(s)},
		{"cpus", show.List(s.CPUs, account.CPUJSON)},
		{"alarms", append([]string{}, alarm.All(v.s, v.o.Absent)...)},
		{"warnings", show.List(account.Warnings(s.Warnings), (*account.Warning).JSON)},
		{"problems", cleanAll(s.Problems)},
		{"left_out", show.List(s.LeftOut, account.LeftOutJSON)},
		{"modules", show.List(s.Modules, func(m *kcdata.Module) show.Object {
			return show.Object{{"name", show.Clean(m.Name)}, {"addr", addr(m.Addr)}, {"size", m.Size}, {"build_id", hexText(m.BuildID)}}
		})},
		{"not_named", cleanAll(v.o.NotSymbolized)}, {"counts", v.counts},
	}
}

// hexText is the hexadecimal form; nil for no bytes.
func hexText(b []byte) *string { return show.Known(hex.EncodeToString(b)) }

// cleaned is the clean name; nil for an empty one.
func cleaned(name string) *string { return show.Known(show.Clean(name)) }

func cleanAll(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = show.Clean(s)
	}
	return out
}

// jsonWriter writes a document item by item. Each frame of each stack repeats its names, so
// the document is many times as long as the file.
type jsonWriter struct {
	*show.Stream
	room
}

func newJSONWriter(w io.Writer, most int64) *jsonWriter {
	return &jsonWriter{Stream: show.NewStream(w), room: room{CutError: CutError{Bytes: most}}}
}

// full reports whether no room is left for a further record.
func (j *jsonWriter) full() bool {
	j.used = j.Written
	return j.room.full()
}

// fitting is the list of the objects of records. If no room is left for a record, it goes
// to leave, which counts it.
func fitting[R any](j *jsonWriter, records []R, object func(R) show.Object, leave func(R)) show.Items {
	return func(yield func(show.Object) bool) {
		for _, r := range records {
			if j.full() {
				leave(r)
			} else {
				yield(object(r))
			}
		}
	}
}
