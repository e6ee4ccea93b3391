package collate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"stackshot/internal/capture"
	"stackshot/internal/procfs"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// enricher adds to a task what only /proc can say, after the release. Each read has a
// time limit: some reads take the mmap_lock of the process, and hang if a process is
// stuck with it. The environment is never read.
//
// In each list stat is the last file: if it has the recorded start time, all that was
// read before it belongs to the same task. For a process whose mmap_lock was held, the
// window recorded mappings and command line (internal/bpf/record_maps.h); windowmaps.go
// uses these.
type enricher struct {
	proc   procfs.FS
	load   *loadInfo     // nil: redacted, nothing of a task's memory is read
	timed  bool          // the time spent on each task is written
	absent string        // why /proc does not have a task
	dead   bool          // there is no /proc of the machine
	kernel []procfs.File // cgroup, stat
	redact []procfs.File // cgroup, exe, stat

	process, thread procFiles
}

const (
	maxCmdline = 16 << 10
	maxCgroup  = 16 << 10
)

var (
	theStat   = procfs.File{Name: "stat", Max: 4096}
	theCgroup = procfs.File{Name: "cgroup", Max: maxCgroup}
	theExe    = procfs.File{Name: "exe", Op: procfs.OpLink, Max: 4096}
	theMaps   = procfs.File{Name: "maps", Max: maxMaps}
)

func (k *Collator) newEnricher(w *capture.Wants) *enricher {
	return &enricher{
		proc: k.Proc, load: k.newLoadInfo(w), timed: w.Timed, absent: k.Absent, dead: k.Dead,
		kernel: []procfs.File{theCgroup, theStat},
		redact: []procfs.File{theCgroup, theExe, theStat},

		process: newProcFiles(), thread: newProcFiles(),
	}
}

// task finds out what /proc says of a task and whose code it runs: t.text and
// t.load.
func (e *enricher) task(t *taskBytes) {
	text := e.read(t)
	items := kcdata.NewBuffer(1 << 10)
	w := &kcdata.StickyWriter{ItemWriter: items}
	textItems(w, text)
	if e.timed {
		w.Record(kcdata.TypeLatencyInfoTask, latencyTask(t.linux.Tgid, t.spent))
	}
	t.text = bytes.Clone(items.Written())
}

// again asks the files that were late once more, if the pid still belongs to the task
// that was recorded.
func (e *enricher) again(t *taskBytes) {
	if !t.load.late {
		return
	}
	stat := []procfs.File{theStat}
	e.proc.Read(procfs.TaskDir(t.pid), stat)
	if st, why := e.another(stat[0], t.since); stat[0].Err == nil && why == "" && !t.executed(&st) {
		e.load.fromFiles(t)
	}
}

// forgive lets files that were late since then be asked once more.
func (e *enricher) forgive(since time.Time) {
	if e.load != nil {
		e.load.images.RetryLate(since)
		e.load.forget()
	}
}

// items returns the KCData that is put before the end of the task's container.
func (e *enricher) items(t *taskBytes) []byte {
	items := kcdata.NewBuffer(1 << 10)
	t.load.write(&kcdata.StickyWriter{ItemWriter: items}, t.maps)
	return append(t.text, items.Written()...)
}

// taskText is what /proc said about a task. It is valid until the next task is read. A
// File without a name was not read.
type taskText struct {
	cgroup, exe, cmdline, maps, stat procfs.File
	why                              string // nothing is known: another task, or none
}

// drop leaves out, for this reason, what is of the task's memory.
func (t *taskText) drop(why error) { t.exe.Err, t.cmdline.Err, t.maps.Err = why, why, why }

// read reads what /proc says, and looks at the mapped files. If the task has ended, or
// its pid belongs to another task by now, nothing is used: the start time must be the
// recorded one.
func (e *enricher) read(t *taskBytes) (text taskText) {
	if t.linux.Tgid == capture.IdleTask || e.dead {
		t.noteRefused()
		return text
	}
	dir := procfs.TaskDir(t.pid)
	kernel := t.linux.Present&kcdata.TaskIsKernel != 0
	switch {
	case kernel: // neither executable nor memory
		e.proc.Read(dir, e.kernel)
		text.cgroup, text.stat = e.kernel[0], e.kernel[1]
	case e.load == nil:
		e.proc.Read(dir, e.redact)
		text.cgroup, text.exe, text.stat = e.redact[0], e.redact[1], e.redact[2]
	default:
		e.process.read(e.proc, dir, &text)
	}
	t.hung = errors.Is(text.maps.Err, procfs.ErrTimeout)
	var st procfs.ProcStat
	st, text.why = e.another(text.stat, t.since)
	if text.why == "" && !kernel && e.load != nil {
		e.checkMemory(t, &text, &st)
		e.load.task(t, text.maps)
	}
	t.noteRefused()
	return text
}

func (t *taskBytes) noteRefused() {
	if n := t.exe.Refused; n > 0 {
		t.load.maps = append(t.load.maps, fmt.Sprintf("executable, in the stop: pointers not followed, to what is not ordinary memory: %d", n))
	}
}

// checkMemory drops what is of another program than the stop saw. If the first thread of the
// task has ended before the others, it has neither memory nor files any more, and threads
// that live are asked.
func (e *enricher) checkMemory(t *taskBytes, text *taskText, st *procfs.ProcStat) {
	ended := false // at the stop already
	for i := range t.threads {
		th := &t.threads[i].facts
		ended = ended || th.Dead && th.Tid == t.linux.Tgid
	}
	executed := false
	switch {
	case errors.Is(text.exe.Err, fs.ErrNotExist):
		text.drop(text.exe.Err) // the others are not the recorded ones either
		executed = e.askThreads(t, text)
	case ended && text.exe.Err == nil: // only an exec gives the number to another thread
		executed = true
	default:
		executed = t.executed(st)
	}
	if executed {
		text.drop(errExec)
	}
}

const maxAsked = 4 // threads, for the memory of their task

var (
	errExec  = errors.New("the task has executed another program since")
	errAsked = fmt.Errorf("the first thread has ended, and so have %d others that were asked", maxAsked)
)

// askThreads puts into text what a thread that lives has. They may end too.
func (e *enricher) askThreads(t *taskBytes, text *taskText) (executed bool) {
	asked := 0
	for i := range t.threads {
		th := &t.threads[i].facts
		if th.Dead || th.Start == 0 || th.Tid == t.linux.Tgid {
			continue
		}
		if asked == maxAsked {
			text.drop(errAsked)
			break
		}
		asked++
		var of taskText
		e.thread.read(e.proc, procfs.TaskDir(int(th.Tid)), &of)
		st, why := e.another(of.stat, th.Start)
		if procfs.Gone(of.exe.Err) || why != "" {
			continue
		}
		t.pid, t.since, *text = int(th.Tid), th.Start, of
		t.hung = errors.Is(of.maps.Err, procfs.ErrTimeout)
		return t.executed(&st)
	}
	return false
}

// executed says whether the memory is of another program than was recorded. An exec changes
// where the stack begins, unless that is not made random, and where code and data end. It is
// not known if the stop was in the middle of it, nor of a task that has no memory any more,
// nor without the right to trace the process, nor if stat was not read (zero).
func (t *taskBytes) executed(is *procfs.ProcStat) bool {
	was := &t.memory
	if was.EndCode == 0 || is.EndCode == procfs.NoRight || is.VSize == 0 {
		return false
	}
	return was.StartStack != is.StartStack || was.EndCode != is.EndCode || was.EndData != is.EndData
}

// procFiles are the files of a task with memory: cgroup, exe, maps; then cmdline, stat.
type procFiles struct{ names, memory []procfs.File }

func newProcFiles() procFiles {
	return procFiles{
		names:  []procfs.File{theCgroup, theExe, theMaps},
		memory: []procfs.File{{Name: "cmdline", Max: maxCmdline}, theStat},
	}
}

// read reads them. If maps hung, on the task's mmap_lock, it does not try cmdline: that
// would hang too, and cost another helper.
func (f *procFiles) read(proc procfs.FS, dir string, text *taskText) {
	proc.Read(dir, f.names)
	text.cgroup, text.exe, text.maps = f.names[0], f.names[1], f.names[2]
	memory := f.memory
	if errors.Is(text.maps.Err, procfs.ErrTimeout) {
		memory[0].Data, memory[0].Err = nil, errSameLock
		memory = memory[1:]
	}
	proc.Read(dir, memory)
	text.cmdline, text.stat = f.memory[0], f.memory[1]
	if text.stat.Err != nil && text.maps.Err == nil {
		text.maps.Err = fmt.Errorf("whose they are is not known: %w", text.stat.Err)
	}
}

var errSameLock = errors.New("not read: maps hangs")

// textItems writes what the files say.
func textItems(w *kcdata.StickyWriter, text taskText) {
	if text.why != "" {
		w.Text(kcdata.TypeLinuxEnrichFailed, "proc: "+text.why)
		return
	}
	for _, f := range []struct {
		file  procfs.File
		write func(*kcdata.StickyWriter, []byte) error
	}{{text.cgroup, writeCgroup}, {text.exe, writeExe}, {text.cmdline, writeCmdline}} {
		if f.file.Name == "" {
			continue
		}
		err := f.file.Err
		if err == nil {
			err = f.write(w, f.file.Data)
		}
		if err != nil && !procfs.Gone(err) { // that the task has ended meanwhile is not noted
			w.Text(kcdata.TypeLinuxEnrichFailed, fmt.Sprintf("%s: %v", f.file.Name, show.WithoutPath(err)))
		}
	}
}

// another says why these files do not belong to the task, or thread, that started then;
// "": they do. st is what stat says; zero if it was not read.
func (e *enricher) another(stat procfs.File, since uint64) (st procfs.ProcStat, why string) {
	if stat.Err != nil {
		if procfs.Gone(stat.Err) {
			return st, e.absent
		}
		return st, "" // stat hangs, or is refused: the others may answer
	}
	st, err := procfs.ParseStat(stat.Data)
	if err != nil {
		return st, err.Error()
	}
	if since != 0 && !st.StartedAt(since) {
		return st, "the number belongs to another task by now"
	}
	return st, ""
}

func writeCgroup(w *kcdata.StickyWriter, text []byte) error {
	lines, err := procfs.ParseCgroup(text)
	if err != nil {
		return err
	}
	w.Text(kcdata.TypeLinuxCgroupPath, procfs.CgroupPath(lines).Path)
	if memory, version := procfs.MemoryCgroup(lines); version == 1 {
		w.Text(kcdata.TypeLinuxMemoryCgroup, memory.Path)
	}
	return nil
}

// maxProcPath is how many bytes of a PROC_PATH Apple's decoder shows, the NUL among them.
const maxProcPath = 1024

func writeExe(w *kcdata.StickyWriter, path []byte) error {
	t := kcdata.TypeCrashProcPath
	if len(path) >= maxProcPath {
		t = kcdata.TypeLinuxExePath
	}
	w.Text(t, string(path))
	return nil
}

func writeCmdline(w *kcdata.StickyWriter, args []byte) error {
	if len(args) > 0 { // empty: a zombie
		w.PutBytes(kcdata.TypeLinuxCmdline, args)
	}
	return nil
}
