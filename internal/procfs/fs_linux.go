package procfs

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// FS is a /proc. The zero value is the machine's own, read without time limits.
// Safe to call concurrently.
type FS struct {
	Root    string   // "": /proc
	Readers *Readers // nil: read on the calling thread, without time limits
}

// Size limits of files, bytes.
const (
	maxStat       = 4 << 20   // /proc/stat has an "intr" line of many numbers
	maxInterrupts = 64 << 20  // a line per interrupt, a column per CPU
	maxListing    = 128 << 20 // PID_MAX_LIMIT, 4 million, entries of at most 32 bytes
)

// Read reads files of one directory below Root ("17/task/18"; "": Root itself).
// Each File's Err says how its read went.
func (f FS) Read(dir string, files []File) {
	dir = f.path(dir)
	if f.Readers != nil {
		f.Readers.Read(dir, files)
	} else {
		readDirect(dir, files)
	}
}

func (f FS) path(dir string) string {
	root := f.Root
	if root == "" {
		root = "/proc"
	}
	if dir == "" {
		return root
	}
	return root + "/" + dir
}

// TaskDir is the directory of a task, for Read.
func TaskDir(tgid int) string { return strconv.Itoa(tgid) }

// ThreadDir is the directory of a thread, for Read.
func ThreadDir(tgid, tid int) string {
	return strconv.Itoa(tgid) + "/task/" + strconv.Itoa(tid)
}

// one reads one file.
func (f FS) one(dir string, file File) ([]byte, error) {
	files := [1]File{file}
	f.Read(dir, files[:])
	return files[0].Data, files[0].Err
}

// parsed reads one file and parses it; a parse error names the path.
func parsed[T any](f FS, dir, name string, parse func([]byte) (T, error)) (T, error) {
	b, err := f.one(dir, File{Name: name})
	if err != nil {
		var zero T
		return zero, err
	}
	v, err := parse(b)
	if err != nil {
		return v, fmt.Errorf("%s/%s: %w", f.path(dir), name, err)
	}
	return v, nil
}

// Tasks lists the tasks (tgid), in the order of /proc: ascending.
func (f FS) Tasks() ([]int, error) { return f.numbers("") }

// Threads lists the threads (tid) of a task.
func (f FS) Threads(tgid int) ([]int, error) { return f.numbers(TaskDir(tgid) + "/task") }

// numbers lists the entries of a directory that are numbers.
func (f FS) numbers(dir string) ([]int, error) {
	files := [1]File{{Name: ".", Op: OpList, Max: maxListing}}
	f.Read(dir, files[:])
	if err := files[0].Err; err != nil {
		return nil, err
	}
	ids, err := parseDirents(files[0].Data)
	if err == nil && files[0].Truncated {
		err = fmt.Errorf("%s: more than %d bytes of entries", f.path(dir), maxListing)
	}
	return ids, err
}

// parseDirents gives the entries that are numbers of a run of struct linux_dirent64:
// {u64 ino; s64 off; u16 reclen; u8 type; char name[]}.
func parseDirents(b []byte) ([]int, error) {
	const head = 19
	var ids []int
	for len(b) > 0 {
		size := 0
		if len(b) > head {
			size = int(binary.NativeEndian.Uint16(b[16:]))
		}
		if size <= head || size > len(b) {
			return nil, syntaxError("directory", "record length", b)
		}
		name, _, _ := bytes.Cut(b[head:size], []byte{0})
		if n, ok := parseUint(name); ok && n < 1<<31 {
			ids = append(ids, int(n))
		}
		b = b[size:]
	}
	return ids, nil
}

// Stat reads /proc/PID/stat.
func (f FS) Stat(tgid int) (ProcStat, error) {
	return parsed(f, TaskDir(tgid), "stat", ParseStat)
}

// ThreadStat reads /proc/PID/task/TID/stat.
func (f FS) ThreadStat(tgid, tid int) (ProcStat, error) {
	return parsed(f, ThreadDir(tgid, tid), "stat", ParseStat)
}

// Status reads /proc/PID/status.
func (f FS) Status(tgid int) (ProcStatus, error) {
	return parsed(f, TaskDir(tgid), "status", ParseStatus)
}

// Loadavg is /proc/loadavg. Like Meminfo and BootID it gives the text without the last
// newline, at most DefaultMax bytes.
func (f FS) Loadavg() (string, error) { return f.text("", "loadavg") }

// Meminfo is /proc/meminfo.
func (f FS) Meminfo() (string, error) { return f.text("", "meminfo") }

// BootID is /proc/sys/kernel/random/boot_id.
func (f FS) BootID() (string, error) { return f.text("sys/kernel/random", "boot_id") }

func (f FS) text(dir, name string) (string, error) {
	b, err := f.one(dir, File{Name: name})
	return strings.TrimSuffix(string(b), "\n"), err
}

// Pressure is all of /proc/pressure, with the resource before each line: "cpu some
// avg10=0.00 …". It is "" without an error if the kernel has no PSI, or PSI is off.
func (f FS) Pressure() (string, error) {
	files := []File{{Name: "cpu"}, {Name: "io"}, {Name: "memory"}, {Name: "irq"}}
	f.Read("pressure", files)
	var text []byte
	var err error
	for i := range files {
		switch e := files[i].Err; {
		case e == nil:
			for line := range bytes.Lines(files[i].Data) {
				text = append(append(text, files[i].Name+" "...), line...)
			}
		case !errors.Is(e, fs.ErrNotExist) && !errors.Is(e, unix.EOPNOTSUPP):
			err = cmp.Or(err, e)
		}
	}
	return string(text), err
}

// PidNamespace gives the inode of this process's pid namespace, and whether it
// is the machine's first one, in which every task is visible.
func (f FS) PidNamespace() (inode uint32, isFirst bool, err error) {
	b, err := f.one("self/ns", File{Name: "pid", Op: OpLink, Max: 64})
	if err != nil {
		return 0, false, err
	}
	_, inode, err = ParseNSLink(b)
	return inode, inode == FirstPidNS, err
}

// Activity reads /proc/interrupts and /proc/stat: one Activity per online CPU.
func (f FS) Activity() (map[int]CPUActivity, error) {
	files := []File{{Name: "interrupts", Max: maxInterrupts}, {Name: "stat", Max: maxStat}}
	f.Read("", files)
	if err := errors.Join(files[0].Err, files[1].Err); err != nil {
		return nil, err
	}
	taken, err := ParseInterrupts(files[0].Data)
	if err != nil {
		return nil, err
	}
	all, err := ParseCPUTicks(files[1].Data)
	if err != nil {
		return nil, err
	}
	for cpu, n := range taken {
		a := all[cpu]
		a.Interrupts = n
		all[cpu] = a
	}
	return all, nil
}
