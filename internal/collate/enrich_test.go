package collate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stackshot/internal/futex"
	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// memory is where exec puts stack, code and data.
type memory struct{ stack, code, data uint64 }

func (m memory) record() kcdata.LinuxTaskMemory {
	return kcdata.LinuxTaskMemory{StartStack: m.stack, EndCode: m.code, EndData: m.data}
}

// statOf is a line of /proc/PID/stat, of a task that started 0.5 s after boot.
func statOf(pid int, size uint64, m memory) []byte {
	return fmt.Appendf(nil, "%d (a) b) S 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 50 %d 1 18446744073709551615 1 %d %d 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 1 %d 0 0 0 0 0 0",
		pid, size, m.code, m.stack, m.data)
}

// An exec is told by where the stack begins and where code and data end. What is not known
// proves nothing: in the middle of an exec at the stop, after the end, or without rights.
func TestExecIsTold(t *testing.T) {
	full := memory{0x7ffd0010, 0x5000, 0x9000}
	for _, c := range []struct {
		was, is  memory
		size     uint64
		executed bool
	}{
		{full, full, 4096, false},
		{full, memory{0x7ffd0020, 0x5000, 0x9000}, 4096, true},
		{full, memory{0x7ffd0010, 0x5008, 0x9000}, 4096, true}, // at the same place
		{full, memory{0x7ffd0010, 0x5000, 0x9008}, 4096, true},
		{full, memory{0x7ffd0020, 0, 0}, 4096, true}, // in the middle of an exec by now
		{full, memory{}, 4096, true},
		{full, memory{}, 0, false},
		{full, memory{0, procfs.NoRight, 0}, 4096, false},
		{memory{}, full, 4096, false},
		{memory{0x7ffd0020, 0, 0}, full, 4096, false},
	} {
		task := &taskBytes{memory: c.was.record()}
		st, err := procfs.ParseStat(statOf(7, c.size, c.is))
		if got := task.executed(&st); got != c.executed || err != nil {
			t.Errorf("%#x, then %#x: %v, %v", c.was, c.is, got, err)
		}
	}
}

// madeProc is a /proc of which a test makes the directories.
type madeProc string

// task makes one; of one without memory exe is "".
func (p madeProc) task(t *testing.T, pid int, exe string, m memory) {
	dir, size := filepath.Join(string(p), fmt.Sprint(pid)), uint64(0)
	var err error
	maps := ""
	if exe != "" {
		size, maps = 4096, "1000-2000 r-xp 0 0:0 0 \n"
		err = os.MkdirAll(dir, 0o700)
		err = errors.Join(err, os.Symlink(exe, dir+"/exe"))
	}
	for name, text := range map[string]string{"maps": maps, "cmdline": exe, "cgroup": "0::/" + exe + "\n", "stat": string(statOf(pid, size, m))} {
		err = errors.Join(err, os.MkdirAll(dir, 0o700), os.WriteFile(dir+"/"+name, []byte(text), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What the memory of a task is, by the files of its first thread or of one that lives.
func TestWhoseMemory(t *testing.T) {
	const began = 500_000_000 // ns
	p := madeProc(t.TempDir())
	old, other := memory{0x7ffd0010, 0x5000, 0x9000}, memory{0x7ffd0020, 0x5000, 0x9000}
	p.task(t, 7, "", memory{}) // its first thread has ended
	p.task(t, 8, "a", old)
	p.task(t, 9, "b", other)
	p.task(t, 10, "", memory{})
	alive := func(tid uint32) futex.Thread { return futex.Thread{Tid: tid, Start: began} }
	ended := func(tid uint32) futex.Thread { return futex.Thread{Tid: tid, Start: began, Dead: true} }
	for _, c := range []struct {
		what    string
		tgid    int
		was     memory
		threads []futex.Thread
		exe     string
		pid     int
		err     error
	}{
		{"itself", 8, old, []futex.Thread{alive(8), alive(9)}, "a", 8, nil},
		{"executed", 9, old, []futex.Thread{alive(9)}, "", 9, errExec},
		{"the second thread", 7, memory{}, []futex.Thread{ended(7), alive(8)}, "a", 8, nil},
		{"not one that had ended", 7, memory{}, []futex.Thread{ended(7), ended(9), alive(8)}, "a", 8, nil},
		{"not one that has ended since", 7, memory{}, []futex.Thread{ended(7), alive(10), alive(99), alive(8)}, "a", 8, nil},
		{"not another thread with the number", 7, memory{}, []futex.Thread{ended(7), {Tid: 9, Start: 2 * began}, alive(8)}, "a", 8, nil},
		{"ended since the stop", 7, old, []futex.Thread{alive(7), alive(8)}, "a", 8, nil},
		{"ended since, and executed", 7, old, []futex.Thread{alive(7), alive(9)}, "", 9, errExec},
		{"the number is given to who executes", 9, memory{}, []futex.Thread{ended(9), alive(98)}, "", 9, errExec},
		{"all have ended", 7, old, []futex.Thread{alive(7), alive(10)}, "", 7, fs.ErrNotExist},
		{"more have ended than are asked", 7, old, []futex.Thread{alive(7), alive(10), alive(96), alive(97), alive(98), alive(8)}, "", 7, errAsked},
	} {
		e := &enricher{proc: procfs.FS{Root: string(p)}, absent: "gone", process: newProcFiles(), thread: newProcFiles()}
		task := &taskBytes{pid: c.tgid, since: began, linux: kcdata.LinuxTask{Tgid: uint32(c.tgid)}, memory: c.was.record()}
		for _, th := range c.threads {
			task.threads = append(task.threads, threadAt{facts: th})
		}
		var text taskText
		e.process.read(e.proc, procfs.TaskDir(c.tgid), &text)
		st, _ := e.another(text.stat, began)
		e.checkMemory(task, &text, &st)
		for _, f := range []procfs.File{text.exe, text.cmdline, text.maps} {
			if !errors.Is(f.Err, c.err) || c.err == nil && f.Name != "maps" && string(f.Data) != c.exe {
				t.Errorf("%s: %s is %q, %v, want %q, %v", c.what, f.Name, f.Data, f.Err, c.exe, c.err)
			}
		}
		if task.pid != c.pid || c.err == nil && (len(text.maps.Data) == 0 || !strings.Contains(string(text.cgroup.Data), c.exe)) {
			t.Errorf("%s: by %d, %q %q", c.what, task.pid, text.maps.Data, text.cgroup.Data)
		}
	}
}
