package kcdata_test

import (
	"bytes"
	"errors"
	"fmt"

	"stackshot/kcdata"
)

// A file is read in two steps: Unwrap takes it out of its envelope, whichever it has, and
// ParseSnapshot decodes the plain buffer. A file that breaks off gives what came before the
// break, together with the error.
func ExampleParseSnapshot() {
	file := aFile() // os.ReadFile("snapshot.kcdata")

	plain, _, err := kcdata.Unwrap(file, 1<<30)
	if err != nil {
		fmt.Println("the file is cut or damaged:", err)
	}
	s, err := kcdata.ParseSnapshotWithin(plain, kcdata.Memory(int64(len(file))))
	if s == nil {
		fmt.Println("not a stackshot:", err)
		return
	}
	for _, task := range s.Tasks {
		fmt.Println(task.ID, task.Name)
		for _, thread := range task.Threads {
			fmt.Printf("  %d %s", thread.ID, thread.Name)
			for _, addr := range thread.Kernel {
				if sym, ok := s.Symbols.Name(addr); ok {
					fmt.Printf(" %s+%#x", sym.Name, sym.Offset)
				}
			}
			fmt.Println()
		}
	}
	// Output:
	// 1 init
	//   1 init ep_poll+0x1c
	// 4711 postgres
	//   4711 postgres
	//   4712 walwriter
}

// Items gives the items of a plain buffer one by one, containers as their begin and end.
func ExampleReader_Items() {
	buf := kcdata.NewWriter(make([]byte, 256))
	for _, err := range []error{
		buf.Begin(kcdata.MagicStackshot),
		buf.BeginContainer(kcdata.TypeTask, 7),
		buf.Struct(kcdata.TypeKernPageSize, uint32(4096)),
		buf.EndContainer(7),
		buf.End(),
	} {
		if err != nil {
			panic(err)
		}
	}
	r, err := kcdata.NewReader(buf.Written())
	if err != nil {
		panic(err)
	}
	for it, err := range r.Items() {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%#x %v % x\n", it.Offset, it.Type, it.Data)
	}
	// Output:
	// 0x10 CONTAINER_BEGIN 03 09 00 00
	// 0x30 KERN_PAGE_SIZE 00 10 00 00
	// 0x50 CONTAINER_END
}

// aFile is a small file of two tasks, in a zstd frame.
func aFile() []byte {
	w := kcdata.NewBuffer(0)
	err := w.Begin(kcdata.MagicStackshot)
	for _, typ := range kcdata.Definitions() {
		err = errors.Join(err, w.Define(typ))
	}
	for _, task := range []struct {
		pid     int32
		threads []string
	}{{1, []string{"init"}}, {4711, []string{"postgres", "walwriter"}}} {
		record := kcdata.TaskSnapshot{Pid: task.pid}
		copy(record.Comm[:], task.threads[0])
		err = errors.Join(err, w.BeginContainer(kcdata.TypeTask, uint64(task.pid)), w.Struct(kcdata.TypeTaskSnapshot, &record))
		for i, name := range task.threads {
			tid := uint64(task.pid) + uint64(i)
			err = errors.Join(err, w.BeginContainer(kcdata.TypeThread, tid), w.String(kcdata.TypeThreadName, name))
			if tid == 1 {
				err = errors.Join(err, w.Uint64s(kcdata.TypeKernStackLR64, []uint64{0xffffffff8130001c}))
			}
			err = errors.Join(err, w.EndContainer(tid))
		}
		err = errors.Join(err, w.EndContainer(uint64(task.pid)))
	}
	var file bytes.Buffer
	err = errors.Join(err,
		w.StructArray(kcdata.TypeLinuxSymbol, []kcdata.LinuxSymbol{{Addr: 0xffffffff8130001c, Offset: 0x1c, Name: 1}}),
		w.Bytes(kcdata.TypeLinuxStrings, []byte("\x00ep_poll\x00")),
		w.End(), kcdata.Compress(&file, w.Written(), kcdata.EnvelopeZstd))
	if err != nil {
		panic(err)
	}
	return file.Bytes()
}
