//go:build linux && (amd64 || arm64)

package hangscenes

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"stackshot/kcdata"
)

// neutral stand for what a file says of the machine that it was taken on.
var neutral = map[kcdata.Type]string{
	kcdata.TypeLinuxHostname: "db7", kcdata.TypeLinuxRelease: "6.12.48", kcdata.TypeOSVersion: "#1 SMP", kcdata.TypeLinuxBootID: "0",
}

// absent are left out: they are of the machine, or would be if they were not of kept tasks alone.
var absent = []kcdata.Type{kcdata.TypeBootArgs, kcdata.TypeLinuxWarning, kcdata.TypeLinuxModule}

// standIn is the name of a process that is kept and has one of this project's.
var standIn = map[string]string{"tt-fifo-hog": "dsp"}

// Trim makes the file of a scene small, and fit to be given away: the scene's tasks, the kernel's
// own and the idle ones are kept, and what it says of the machine is made neutral.
func (r Standing) Trim(plain []byte) ([]byte, error) {
	snap, err := kcdata.ParseSnapshot(plain)
	if err != nil {
		return nil, err
	}
	keep := map[uint64]bool{}
	for _, task := range snap.Tasks {
		keep[task.ID] = r.keeps(task)
	}
	e, err := kcdata.EditBuffer(plain)
	if err != nil {
		return nil, err
	}
	t := trimmer{keep: keep, out: slices.Clone(plain[:marker])}
	for it, err := range e.Items() {
		if err != nil {
			return nil, err
		}
		t.item(it)
	}
	t.out = append(t.out, plain[len(plain)-marker:]...)
	_, err = kcdata.Check(t.out)
	return t.out, errors.Join(t.err, err)
}

// keeps: kernel threads, the machine's first process, and what the programs of scenes are.
func (r Standing) keeps(task *kcdata.Task) bool {
	program := ""
	if len(task.Cmdline) > 0 {
		program = filepath.Base(task.Cmdline[0])
	}
	return task.ID <= 2 || task.Linux.Ppid == 2 || slices.Contains(r.Pids, int(task.ID)) ||
		strings.HasPrefix(program, "scenes.") || program == "java" || strings.HasPrefix(program, "ends.c")
}

// marker is the size of the items that begin and end a file.
const marker = 16

// trimmer is at an item of a file.
type trimmer struct {
	out   []byte
	keep  map[uint64]bool
	depth int
	task  uint64
	drop  bool // the task that it is in
	err   error
}

func (t *trimmer) item(it kcdata.Item) {
	begin, end := it.Type == kcdata.TypeContainerBegin, it.Type == kcdata.TypeContainerEnd
	if begin {
		if t.depth == 0 {
			t.task = it.ContainerID()
			kept, is := t.keep[it.ContainerID()]
			t.drop = is && !kept
		}
		t.depth++
	}
	if !t.drop {
		t.out = append(t.out, t.changed(it)...)
	}
	if end {
		if t.depth--; t.depth == 0 {
			t.drop = false
		}
	}
}

// changed is what stands for an item.
func (t *trimmer) changed(it kcdata.Item) []byte {
	of := it.Type
	if it.Type == kcdata.TypeArray {
		of, _, _ = it.Elem()
	}
	w := kcdata.NewBuffer(0)
	switch text, is := neutral[of]; {
	case it.Type == kcdata.TypeDefinition:
		return it.Position().Bytes()
	case is:
		t.note(w.String(of, text))
	case slices.Contains(absent, of):
	case of == kcdata.TypeLinuxMount:
		t.note(w.StructArray(of, slices.DeleteFunc(kcdata.Elements[kcdata.LinuxMount](it), private)))
	case of == kcdata.TypeLinuxEnd:
		t.note(w.StructArray(of, slices.DeleteFunc(kcdata.Elements[kcdata.LinuxEnd](it), func(e kcdata.LinuxEnd) bool { return !t.keep[uint64(e.Tgid)] })))
	case of == kcdata.TypeTaskSnapshot:
		t.note(kcdata.Patch(it.Position(), func(s *kcdata.TaskSnapshot) { rename(s.Comm[:], t.task) }))
		return it.Position().Bytes()
	case of == kcdata.TypeThreadName:
		name := bytes.Clone(it.Data)
		if rename(name, t.task); bytes.Equal(name, it.Data) {
			return it.Position().Bytes()
		}
		t.note(w.String(of, string(bytes.TrimRight(name, "\x00"))))
	default:
		return it.Position().Bytes()
	}
	return w.Written()
}

func (t *trimmer) note(err error) { t.err = errors.Join(t.err, err) }

// rename writes the name that stands for another, in place.
func rename(name []byte, task uint64) {
	made := standIn[string(bytes.TrimRight(name, "\x00"))]
	if task == 1 {
		made = "init"
	}
	if made != "" {
		clear(name)
		copy(name, made)
	}
}

// private is a mount that may be of this machine only.
func private(m kcdata.LinuxMount) bool {
	point := string(bytes.TrimRight(m.Point[:], "\x00"))
	return point != "/" && !strings.HasPrefix(point, "/tmp/data-") && !strings.HasPrefix(point, "/tmp/userlab-ends-")
}
