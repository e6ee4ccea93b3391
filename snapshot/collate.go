package snapshot

import (
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/foreign"
	"stackshot/internal/image"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// collating is what makes the file of a raw capture, beside that. It may be used for
// one collation after the other.
type collating struct {
	host    *host
	proc    procfs.FS // of the machine that was captured, by which tasks get names and mappings
	images  *image.Cache
	files   *foreign.Files
	absent  string // why proc does not have a task
	version string // of this program
	redact  bool
	asTaken bool // user stacks and mappings go into the file as the window took them
	timed   bool // what the capture cost is in the file
	user    userCollating
}

// userCollating says what becomes of user stacks.
type userCollating struct {
	off       bool // none was taken
	chainOnly bool // by frame pointers alone
	frames    int  // of a stack, at most
	keep      bool // what they are made of stays
}

// summary is what came of a collation.
type summary struct {
	tasks, threads int
	bytes          int64 // of the file
	leftOut        []kcdata.LinuxLeftOut
	seen           int              // tasks recorded or left out
	vanished       int              // tasks that ended on their own before they were recorded
	compared, ran  int              // threads read a second time, and of these those that ran in between
	warnings       []kcdata.Warning // of the file, and for whoever took it
}

// collation is one of them, in three stages. collect decodes each task and completes
// it by what /proc and the files behind it know. settle finds what only all tasks
// together tell. write streams out the file; before it nothing is written.
type collation struct {
	*collating
	c       *captured
	names   *names
	samples *placer
	enrich  *enricher
	unwind  *unwinder // nil: no user stacks
	began   time.Time
	tasks   []*taskBytes // in census order
	late    []*taskBytes // of these, those that files were late for
	threads int
	user    kcdata.LinuxUserTaken
}

// collate writes the file of a capture: a section on the machine, the tasks in census
// order, a section on the capture. It reads the workers' bytes with the same
// distrust as any file: a task that does not parse is left out and named. An error is
// of the output.
func (k *collating) collate(out io.Writer, c *captured) (*summary, error) {
	n := k.newNames()
	x := &collation{
		collating: k, c: c, names: n, samples: newPlacer(c, n, k.redact), enrich: k.newEnricher(),
		unwind: k.newUnwinder(c.unstopped()), began: time.Now(),
	}
	if err := x.collect(); err != nil {
		return nil, err
	}
	if err := x.settle(); err != nil {
		return nil, err
	}
	to := &counter{to: out}
	if err := x.write(to); err != nil {
		return nil, err
	}
	return x.summary(to.n), nil
}

// collect merges the parts by census index, and completes each task.
func (x *collation) collect() error {
	list := x.c.inOrder()
	for i := 0; i < len(list); {
		first := i
		for i < len(list) && list[i].item.Index == list[first].item.Index {
			i++
		}
		t, err := openTask(x.c.second, list[first:i])
		if err != nil {
			x.unreadable(list[first:i], err)
			continue
		}
		x.tasks = append(x.tasks, t)
		x.threads += len(t.threads)
		for i := range t.threads {
			if w := t.threads[i].user.Walk; w != nil {
				addUser(&x.user, w)
			}
		}
		if err := x.complete(t); err != nil {
			return err
		}
	}
	return nil
}

func (x *collation) unreadable(parts []recorded, err error) {
	for _, p := range parts {
		x.c.failed = append(x.c.failed, failure{item: p.item, reason: kcdata.LeftOutError, errno: unix.EBADMSG})
	}
	x.c.warn("task_unreadable", fmt.Sprintf("task %d: %v", parts[0].item.Tgid, err))
}

// complete brings a task from what was recorded to what the file says: kernel
// addresses as the file shows them, samples, what /proc and the files behind it
// know, and user stacks. What a file was late for is left for the end.
func (x *collation) complete(t *taskBytes) error {
	if err := x.names.addresses(t); err != nil {
		return err
	}
	if err := x.samples.place(t); err != nil {
		return err
	}
	x.enrich.task(t)
	made, err := x.unwind.task(t)
	if err != nil {
		return err
	}
	if x.timeLeft() && (t.load.late || made.late) {
		x.late = append(x.late, t)
		return nil
	}
	return x.finish(t, made)
}

// timeLeft says whether a file may be asked once more.
func (x *collation) timeLeft() bool {
	l := x.enrich.load
	return l != nil && l.left > 0 || x.unwind != nil && x.unwind.Left > 0
}

// finish makes the edits, and lets go of what they were made of.
func (x *collation) finish(t *taskBytes, made unwound) error {
	err := x.unwind.apply(t, made)
	t.items.InsertBefore(t.end, x.enrich.items(t))
	t.done()
	return err
}

// settle asks files that were late once more, in what is left of the time for all,
// and says which samples found no thread.
func (x *collation) settle() error {
	if len(x.late) > 0 {
		x.enrich.forgive(x.began)
	}
	for _, t := range x.late {
		x.enrich.again(t)
		made, err := x.unwind.task(t)
		if err != nil {
			return err
		}
		if err := x.finish(t, made); err != nil {
			return err
		}
	}
	if x.c.asked == nil { // else threads of other tasks have no place, and nobody misses them
		x.samples.lost(x.c)
	}
	x.c.finishCounts(x.c.asked != nil)
	return nil
}

func (x *collation) write(out io.Writer) error {
	pre, err := x.preSection()
	if err != nil {
		return err
	}
	if _, err := out.Write(pre); err != nil {
		return err
	}
	for i, t := range x.tasks {
		if _, err := t.items.WriteTo(out); err != nil {
			return err
		}
		x.tasks[i] = nil
	}
	post, err := x.postSection()
	if err != nil {
		return err
	}
	_, err = out.Write(post)
	return err
}

func (x *collation) summary(bytes int64) *summary {
	c := x.c
	s := &summary{
		tasks: len(x.tasks), threads: x.threads, bytes: bytes, leftOut: c.leftOut(), seen: c.seen(),
		vanished: int(c.capture.Vanished), warnings: append(c.warnings[:len(c.warnings):len(c.warnings)], x.unwind.warnings()...),
	}
	if c.second != nil {
		s.compared, s.ran = int(c.second.compared), int(c.second.ran)
	}
	return s
}

// counter counts what goes out.
type counter struct {
	to io.Writer // nil: nobody
	n  int64
}

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	if c.to == nil {
		return len(b), nil
	}
	n, err := c.to.Write(b)
	if err != nil {
		return n, fmt.Errorf("write the snapshot at byte %d: %w", c.n-int64(len(b)), err)
	}
	return n, nil
}
