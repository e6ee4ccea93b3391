package snapshot

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"stackshot/kcdata"
)

// maxWaiting is how many bytes of the file may wait for files that were late. When
// there are more, the end has come.
const maxWaiting = 128 << 20

// finisher brings tasks from what the stop recorded to what the file says: with
// what /proc and the files behind it know, and user stacks. What a file was late
// for waits, and with it every task behind it, so that the order stays; at the end
// such files are asked once more, in what is left of the time for all.
type finisher struct {
	out     io.Writer
	enrich  *enricher
	unwind  *unwinder // nil: no user stacks
	began   time.Time
	waiting []*taskBytes
	bytes   int  // of these
	most    int  // of bytes; constant
	again   bool // late files have been asked once more: what is late now stays so
}

func (s *Session) newFinisher(out io.Writer, c *captured) *finisher {
	return &finisher{
		out: out, enrich: newEnricher(s.proc, s.newLoadInfo(), s.options.Latency != LatencyOff, s.absent),
		unwind: s.newUnwinder(c.unstopped()), began: time.Now(), most: cmp.Or(s.hooks.waiting, maxWaiting),
	}
}

// task finishes one.
func (f *finisher) task(t *taskBytes, spent cost) error {
	f.enrich.task(t, spent)
	made, err := f.unwind.task(t)
	if err != nil {
		return err
	}
	t.late = !f.again && f.timeLeft() && (t.load.late || made.late)
	if !t.late && len(f.waiting) == 0 {
		return f.write(t, made)
	}
	if !t.late {
		if err := f.finish(t, made); err != nil {
			return err
		}
	}
	f.wait(t)
	if f.bytes > f.most {
		return f.end()
	}
	return nil
}

// timeLeft says whether a file may be asked once more.
func (f *finisher) timeLeft() bool {
	l := f.enrich.load
	return l != nil && l.left > 0 || f.unwind != nil && f.unwind.Left > 0
}

// wait has a task wait. Its edits may be in memory that is used again.
func (f *finisher) wait(t *taskBytes) {
	t.items.Own()
	f.waiting, f.bytes = append(f.waiting, t), f.bytes+t.items.Len()
}

// end writes what waits.
func (f *finisher) end() error {
	if len(f.waiting) > 0 && !f.again {
		f.again = true
		f.enrich.forgive(f.began)
	}
	for i, t := range f.waiting {
		f.waiting[i] = nil
		if err := f.late(t); err != nil {
			return err
		}
	}
	f.waiting, f.bytes = nil, 0
	return nil
}

// late writes a task that has waited.
func (f *finisher) late(t *taskBytes) error {
	if !t.late {
		_, err := t.items.WriteTo(f.out)
		return err
	}
	f.enrich.again(t)
	made, err := f.unwind.task(t)
	if err != nil {
		return err
	}
	return f.write(t, made)
}

func (f *finisher) write(t *taskBytes, made unwound) error {
	if err := f.finish(t, made); err != nil {
		return err
	}
	_, err := t.items.WriteTo(f.out)
	return err
}

// finish makes the edits.
func (f *finisher) finish(t *taskBytes, made unwound) error {
	err := f.unwind.apply(t, made)
	t.items.InsertBefore(t.end, f.enrich.items(t))
	return err
}

// warnings are for whoever took the capture. The file says the same by its marks,
// which are gone once it is mended.
func (f *finisher) warnings() []kcdata.Warning {
	if f.unwind == nil || f.unwind.short == 0 {
		return nil
	}
	return []kcdata.Warning{{Code: "unwind_tables_missed", Text: fmt.Sprintf(
		"unwind tables of %d files were not read: callers may be missing in %d user stacks, which symbolize --unwind can make anew from the file",
		len(f.unwind.files), f.unwind.short)}}
}
