package collate

import (
	"bytes"
	"errors"
	"fmt"
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
	names  []procfs.File // cgroup, exe, maps; then
	memory []procfs.File // cmdline, stat
}

const (
	maxCmdline = 16 << 10
	maxCgroup  = 16 << 10
)

func (k *Collator) newEnricher(w *capture.Wants) *enricher {
	stat, cgroup := procfs.File{Name: "stat", Max: 4096}, procfs.File{Name: "cgroup", Max: maxCgroup}
	exe := procfs.File{Name: "exe", Op: procfs.OpLink, Max: 4096}
	return &enricher{
		proc: k.Proc, load: k.newLoadInfo(w), timed: w.Timed, absent: k.Absent, dead: k.Dead,
		kernel: []procfs.File{cgroup, stat},
		redact: []procfs.File{cgroup, exe, stat},
		names:  []procfs.File{cgroup, exe, {Name: "maps", Max: maxMaps}},
		memory: []procfs.File{{Name: "cmdline", Max: maxCmdline}, stat},
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
	stat := []procfs.File{{Name: "stat", Max: 4096}}
	e.proc.Read(procfs.TaskDir(int(t.linux.Tgid)), stat)
	if stat[0].Err == nil && e.another(stat[0], t) == "" {
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

// read reads what /proc says, and looks at the mapped files. If the task has ended, or
// its pid belongs to another task by now, nothing is used: the start time must be the
// recorded one.
func (e *enricher) read(t *taskBytes) (text taskText) {
	if t.linux.Tgid == capture.IdleTask || e.dead {
		t.noteRefused()
		return text
	}
	dir := procfs.TaskDir(int(t.linux.Tgid))
	kernel := t.linux.Present&kcdata.TaskIsKernel != 0
	switch {
	case kernel: // neither executable nor memory
		e.proc.Read(dir, e.kernel)
		text.cgroup, text.stat = e.kernel[0], e.kernel[1]
	case e.load == nil:
		e.proc.Read(dir, e.redact)
		text.cgroup, text.exe, text.stat = e.redact[0], e.redact[1], e.redact[2]
	default:
		e.proc.Read(dir, e.names)
		text.cgroup, text.exe, text.maps = e.names[0], e.names[1], e.names[2]
		e.readMemory(dir, &text)
	}
	t.hung = errors.Is(text.maps.Err, procfs.ErrTimeout)
	text.why = e.another(text.stat, t)
	if text.why == "" && !kernel && e.load != nil {
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

// readMemory reads cmdline and stat. If maps hung, on the task's mmap_lock, it does not
// try cmdline: that would hang too, and cost another helper.
func (e *enricher) readMemory(dir string, text *taskText) {
	memory := e.memory
	if errors.Is(text.maps.Err, procfs.ErrTimeout) {
		e.memory[0].Data, e.memory[0].Err = nil, errSameLock
		memory = e.memory[1:]
	}
	e.proc.Read(dir, memory)
	text.cmdline, text.stat = e.memory[0], e.memory[1]
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

// another says why these files do not belong to this task; "": they do.
func (e *enricher) another(stat procfs.File, t *taskBytes) string {
	if stat.Err != nil {
		if procfs.Gone(stat.Err) {
			return e.absent
		}
		return "" // stat hangs, or is refused: the others may answer
	}
	st, err := procfs.ParseStat(stat.Data)
	if err != nil {
		return err.Error()
	}
	if t.linux.Present&kcdata.TaskHasTimes != 0 && !st.StartedAt(t.linux.StartBoottime) {
		return "the number belongs to another task by now"
	}
	return ""
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
