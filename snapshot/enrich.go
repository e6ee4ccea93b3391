package snapshot

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// enricher adds to a task what only /proc can say, after the release, each
// read under a time limit: these reads take mmap_lock and hang on a process
// that is stuck with it. The environment is never read.
type enricher struct {
	proc   procfs.FS
	redact bool
	timed  bool // the time spent on each task is written
	files  []procfs.File
	room   []byte // for one task's items, used again for the next
}

const (
	maxCmdline = 16 << 10
	maxCgroup  = 16 << 10
	// Every file's text, its definition, and what went wrong with each.
	enrichRoom = maxCmdline + maxCgroup + 2*4096 + 8<<10
)

func newEnricher(proc procfs.FS, redact, timed bool) *enricher {
	files := []procfs.File{{Name: "stat", Max: 4096}, {Name: "cgroup", Max: maxCgroup}, {Name: "exe", Op: procfs.OpLink, Max: 4096}}
	if !redact {
		files = append(files, procfs.File{Name: "cmdline", Max: maxCmdline})
	}
	return &enricher{proc: proc, redact: redact, timed: timed, files: files, room: make([]byte, enrichRoom)}
}

// items gives the KCData to put before the task's end.
func (e *enricher) items(t *taskBytes, spent cost) []byte {
	items := kcdata.NewWriter(e.room)
	w := &section{ItemWriter: items}
	e.procItems(w, t)
	if e.timed {
		w.record(kcdata.TypeLatencyInfoTask, latencyTask(t.linux.Tgid, spent))
	}
	return items.Written()
}

// procItems adds what /proc says. A task that has ended, or whose number is
// another's by now, gets nothing: its start time must be the recorded one.
func (e *enricher) procItems(w *section, t *taskBytes) {
	if t.linux.Tgid == idleTask {
		return
	}
	files := e.files
	if t.linux.Present&kcdata.TaskIsKernel != 0 {
		files = files[:2] // neither executable nor command line
	}
	e.proc.Read(procfs.TaskDir(int(t.linux.Tgid)), files)
	if why := e.another(files[0], t); why != "" {
		w.text(kcdata.TypeLinuxEnrichFailed, "proc: "+why)
		return
	}
	e.cgroup(w, files[1])
	if len(files) > 2 {
		e.exe(w, files[2])
	}
	if len(files) > 3 {
		e.cmdline(w, files[3])
	}
}

// another says why these files are not this task's.
func (e *enricher) another(stat procfs.File, t *taskBytes) string {
	if stat.Err != nil {
		if gone(stat.Err) {
			return "ended before it was read"
		}
		return "" // stat hangs, or is refused: the others may answer
	}
	st, err := procfs.ParseStat(stat.Data)
	if err != nil {
		return err.Error()
	}
	const tick = 1_000_000_000 / userHz
	if t.linux.Present&kcdata.TaskHasTimes != 0 && st.StartTime != t.linux.StartBoottime/tick {
		return "the number belongs to another task by now"
	}
	return ""
}

func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

func (e *enricher) cgroup(w *section, f procfs.File) {
	if f.Err != nil {
		e.fail(w, "cgroup", f.Err)
		return
	}
	lines, err := procfs.ParseCgroup(f.Data)
	if err != nil {
		e.fail(w, "cgroup", err)
		return
	}
	w.text(kcdata.TypeLinuxCgroupPath, procfs.CgroupPath(lines).Path)
}

func (e *enricher) exe(w *section, f procfs.File) {
	if f.Err != nil {
		e.fail(w, "exe", f.Err)
		return
	}
	w.text(kcdata.TypeLinuxExePath, string(f.Data))
}

func (e *enricher) cmdline(w *section, f procfs.File) {
	if f.Err != nil {
		e.fail(w, "cmdline", f.Err)
		return
	}
	if len(f.Data) > 0 { // empty: a zombie
		w.bytes(kcdata.TypeLinuxCmdline, f.Data)
	}
}

// fail notes what could not be read. That a task's end came first is no news.
func (e *enricher) fail(w *section, what string, err error) {
	if gone(err) {
		return
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	w.text(kcdata.TypeLinuxEnrichFailed, fmt.Sprintf("%s: %v", what, err))
}
