package collate

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/capture"
	"stackshot/internal/foreign"
	"stackshot/internal/host"
	"stackshot/internal/image"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// Collator makes files of raw captures. Its fields are what it needs beside the
// capture. It may be used again, for one collation at a time.
type Collator struct {
	Host    *host.Host
	Proc    procfs.FS // of the machine that was captured, by which tasks get names and mappings
	Images  *image.Cache
	Files   *foreign.Files
	Absent  string // why Proc does not have a task
	Version string // of this program
	// LateThreads bounds the threads of tasks that wait for files that were late; 0: a default.
	LateThreads  int
	KeepUserSide bool // user stacks and mappings go into the file as the window took them
	Dead         bool // the machine is gone, or is not this one: no /proc is read; KeepUserSide must be set

	// Load gives the pieces of a task, which has these parts; they are the collation's until the next
	// call. It is called twice for each task. nil: the parts have their pieces.
	Load func([]capture.Part) ([][]byte, error)
	// Surveyed, with Load, is called when all tasks have been loaded once and nothing is written yet:
	// what is known only then may still be put into the capture. May be nil.
	Surveyed func()

	// Warnings, called when all else of the file is known, gives further ones. May be nil.
	Warnings func() []kcdata.Warning
}

// Summary is the outcome of a collation.
type Summary struct {
	Tasks, Threads int
	Bytes          int64                   // of the file
	LeftOut        []kcdata.LinuxLeftOut   // a task once for each reason
	Seen           int                     // tasks recorded or left out
	Vanished       int                     // tasks that ended on their own before they were recorded
	Compared, Ran  int                     // threads read a second time, and of these those that ran in between
	Files          *kcdata.LinuxFilesTaken // open files that threads wait at; nil: they were not recorded
	Warnings       []kcdata.Warning        // of the file, and for whoever took it
}

// collation is one run, in three stages. collect decodes each task and completes it
// with what /proc and the mapped files say. settle does what can be done only when all
// tasks are known. write streams out the file; before that nothing is written.
type collation struct {
	*Collator
	c        *capture.Raw
	names    *names
	samples  *placer
	enrich   *enricher
	unwind   *unwinder // nil: no user stacks
	began    time.Time
	tasks    []*kcdata.Editor // in census order, with their edits: nothing else of a task is kept
	late     []*taskBytes     // tasks that wait for late files
	waiting  int              // threads of these
	again    bool             // late files have been asked once more, and are not asked again
	streamed int              // tasks that were written one by one (stream.go)
	threads  int
	user     kcdata.LinuxUserTaken
	waits    *waits
	files    *files
}

// Write writes the file of a capture: a section on the machine, the tasks in census
// order, a section on the capture. It trusts the workers' bytes no more than those of
// a file: a task that does not parse is left out and named. An error comes from out.
func (k *Collator) Write(out io.Writer, c *capture.Raw) (*Summary, error) {
	n := k.newNames(c)
	x := &collation{
		Collator: k, c: c, names: n, samples: newPlacer(c, n, c.Wants.Redact), enrich: k.newEnricher(&c.Wants),
		unwind: k.newUnwinder(&c.Wants, c.Unstopped()), began: time.Now(), waits: newWaits(k.Proc, k.Dead, c.Wants.Redact), files: newFiles(c),
	}
	to := &counter{to: out}
	if err := x.writeAll(to); err != nil {
		return nil, err
	}
	return x.summary(to.n), nil
}

func (x *collation) writeAll(out io.Writer) error {
	if x.Load != nil {
		return x.writeStream(out)
	}
	x.collect()
	x.settle()
	return x.write(out)
}

// collect merges the parts by census index, and completes each task.
func (x *collation) collect() {
	for parts := range x.c.Tasks() {
		if err := x.task(parts); err != nil {
			x.unreadable(parts, err)
		}
	}
}

// task reads one task and completes it. An error says what is wrong with its bytes; the
// task is left out.
func (x *collation) task(parts []capture.Part) error {
	t, err := openTask(x.c.Second, parts)
	if err != nil {
		return err
	}
	user := x.user
	for i := range t.threads {
		if w := t.threads[i].user.Walk; w != nil {
			addUser(&user, w)
		}
	}
	if err := x.complete(t); err != nil {
		return err
	}
	x.waits.add(t)
	x.files.add(t)
	x.tasks, x.threads, x.user = append(x.tasks, t.items), x.threads+len(t.threads), user
	if x.waiting > cmp.Or(x.LateThreads, maxLateThreads) {
		x.askAgain()
	}
	return nil
}

func (x *collation) unreadable(parts []capture.Part, err error) {
	for _, p := range parts {
		x.c.Failed = append(x.c.Failed, capture.Failure{Item: p.Item, Reason: kcdata.LeftOutError, Errno: unix.EBADMSG})
	}
	x.c.Warn("task_unreadable", fmt.Sprintf("task %d: %v", parts[0].Item.Tgid, err))
}

// complete adds to a recorded task: kernel addresses as the file shows them, samples, what
// /proc and the mapped files say, and user stacks. A task whose files were late waits
// for settle.
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
	if !x.again && x.timeLeft() && (t.load.late || made.late) {
		x.late, x.waiting = append(x.late, t), x.waiting+len(t.threads)
		return nil
	}
	return x.finish(t, made)
}

// timeLeft reports whether there is time to ask a file once more.
func (x *collation) timeLeft() bool {
	l := x.enrich.load
	return l != nil && l.left > 0 || x.unwind != nil && x.unwind.Left > 0
}

// finish turns what was found out about a task into edits of its bytes.
func (x *collation) finish(t *taskBytes, made unwound) error {
	err := x.unwind.apply(t, made)
	t.items.InsertBefore(t.end, x.enrich.items(t))
	return err
}

// maxLateThreads bounds the memory for tasks that wait for late files: some KiB a thread.
const maxLateThreads = 100_000

// askAgain asks files that were late once more, in what is left of the time for all,
// and finishes the tasks that waited for them.
func (x *collation) askAgain() {
	x.again = true
	x.enrich.forgive(x.began)
	for _, t := range x.late {
		x.enrich.again(t)
		made, err := x.unwind.task(t)
		if err == nil {
			err = x.finish(t, made)
		}
		if err != nil {
			x.tasks = slices.DeleteFunc(x.tasks, func(e *kcdata.Editor) bool { return e == t.items })
			x.threads -= len(t.threads)
			x.waits.drop(t)
			x.files.drop(t)
			x.unreadable(t.parts, err)
		}
	}
	x.late, x.waiting = nil, 0
}

// settle is for what can be said only when all tasks are known: which files are still
// late, which samples found no thread, who owns the futexes that threads wait for, and which of
// the other ends of files count.
func (x *collation) settle() {
	if len(x.late) > 0 {
		x.askAgain()
	}
	x.waits.settle(x.c)
	x.files.settle(x.c)
	if x.c.Asked == nil { // else the file has no place for other tasks' threads, and needs none
		x.samples.lost(x.c)
	}
	x.c.FinishCounts(x.c.Asked != nil)
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
		if _, err := t.WriteTo(out); err != nil {
			return err
		}
		x.tasks[i] = nil
	}
	return x.writePost(out)
}

func (x *collation) writePost(out io.Writer) error {
	if x.Collator.Warnings != nil {
		x.c.Warnings = append(x.c.Warnings, x.Collator.Warnings()...)
	}
	post, err := x.postSection()
	if err != nil {
		return err
	}
	_, err = out.Write(post)
	return err
}

// taskCount is how many tasks the file has.
func (x *collation) taskCount() int { return len(x.tasks) + x.streamed }

func (x *collation) summary(bytes int64) *Summary {
	c := x.c
	s := &Summary{
		Tasks: x.taskCount(), Threads: x.threads, Bytes: bytes, LeftOut: c.LeftOut(), Seen: len(c.KnownTasks()),
		Vanished: int(c.Capture.Vanished), Warnings: append(c.Warnings[:len(c.Warnings):len(c.Warnings)], x.unwind.warnings()...),
	}
	if c.FileSources != 0 {
		s.Files = &x.files.taken
	}
	if c.Second != nil {
		s.Compared, s.Ran = int(c.Second.Compared), int(c.Second.Ran)
	}
	return s
}

// counter counts the bytes that go out.
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
