package procfs

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
)

// ThreadFiles says which files of a thread to read.
type ThreadFiles uint16

// The files of a thread. Stack and Syscall need CAP_SYS_ADMIN or the right to
// trace the thread; IO the latter.
const (
	ReadStat ThreadFiles = 1 << iota
	ReadStatus
	ReadStack
	ReadWchan
	ReadSchedstat
	ReadSyscall
	ReadIO
)

// threadFiles has the name of each of these files, by bit, and its parser.
var threadFiles = [...]struct {
	name  string
	parse func(t *Thread, b []byte) error
}{
	{"stat", func(t *Thread, b []byte) (err error) { t.Stat, err = ParseStat(b); return err }},
	{"status", func(t *Thread, b []byte) error { return t.Status.Parse(b) }},
	{"stack", func(t *Thread, b []byte) error { return t.Stack.Parse(b) }},
	{"wchan", func(t *Thread, b []byte) error { t.Wchan = ParseWchan(b); return nil }},
	{"schedstat", func(t *Thread, b []byte) (err error) { t.Schedstat, err = ParseSchedstat(b); return err }},
	{"syscall", func(t *Thread, b []byte) (err error) { t.Syscall, err = ParseSyscall(b); return err }},
	{"io", func(t *Thread, b []byte) (err error) { t.IO, err = ParseIO(b); return err }},
}

// Thread holds what the files of one thread say. A field is valid if its bit is in Have.
type Thread struct {
	Tid       int
	Have      ThreadFiles
	Stat      ProcStat
	Status    ProcStatus
	Stack     ThreadStack
	Wchan     string // the function in which it sleeps
	Schedstat Schedstat
	Syscall   Syscall
	IO        IO
}

// threadBatch is how many threads of a task one helper reads in one job. A job costs
// two thread switches, about as much as reading the files of one thread. The time limit
// holds for each file all the same.
const threadBatch = 16

// ThreadReader reads the threads of tasks, all into the same memory. Not safe to
// call concurrently.
type ThreadReader struct {
	fs    FS
	want  []int  // constant; indexes in threadFiles
	files []File // threadBatch times as many
	rec   Thread
}

// NewThreadReader makes a reader of the given files.
func NewThreadReader(fs FS, want ThreadFiles) *ThreadReader {
	r := &ThreadReader{fs: fs}
	for i := range threadFiles {
		if want&(1<<i) != 0 {
			r.want = append(r.want, i)
		}
	}
	r.files = make([]File, threadBatch*len(r.want))
	return r
}

// Threads reads threads of one task, in the order of tids, and opens the task's directory
// once per batch. A record is valid until the next one. Its error joins one error for each
// file that has no bit in Have; a thread that is gone gives fs.ErrNotExist or ESRCH for
// each.
func (r *ThreadReader) Threads(tgid int, tids []int) iter.Seq2[*Thread, error] {
	return func(yield func(*Thread, error) bool) {
		for len(tids) > 0 {
			batch := tids[:min(threadBatch, len(tids))]
			tids = tids[len(batch):]
			r.load(tgid, batch)
			for i, tid := range batch {
				if !yield(r.take(tgid, tid, r.files[i*len(r.want):])) {
					return
				}
			}
		}
	}
}

// Read reads one thread.
func (r *ThreadReader) Read(tgid, tid int) (*Thread, error) {
	r.load(tgid, []int{tid})
	return r.take(tgid, tid, r.files)
}

// load reads the files of a batch.
func (r *ThreadReader) load(tgid int, tids []int) {
	n := 0
	for _, tid := range tids {
		dir := strconv.Itoa(tid) + "/"
		for _, file := range r.want {
			r.files[n].Name = dir + threadFiles[file].name
			n++
		}
	}
	r.fs.Read(TaskDir(tgid)+"/task", r.files[:n])
}

// take parses one thread's files into the record.
func (r *ThreadReader) take(tgid, tid int, files []File) (*Thread, error) {
	r.rec.Tid, r.rec.Have = tid, 0
	var errs []error
	for i, file := range r.want {
		err := files[i].Err
		if err == nil {
			if err = threadFiles[file].parse(&r.rec, files[i].Data); err != nil {
				err = fmt.Errorf("%s: %w", r.fs.path(ThreadDir(tgid, tid)), err)
			}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r.rec.Have |= 1 << file
	}
	return &r.rec, errors.Join(errs...)
}
