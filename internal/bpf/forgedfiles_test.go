package bpf

import (
	"encoding/binary"
	"math/rand/v2"
	"structs"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// forgedOpen mirrors struct forged_open (mapletest.bpf.c).
type forgedOpen struct {
	_                    structs.HostLayout
	File, Files, Fd, Way uint64
	Node, N              uint64
	V                    kcdata.LinuxFile
	S                    kcdata.LinuxSocket
}

// Where the objects of a made-up open file lie in its page.
const (
	ffFile, ffInode, ffSuper, ffPrivate, ffDentry, ffName, ffSecond, ffBufs = 0x000, 0x100, 0x400, 0x500, 0x700, 0x800, 0x900, 0xe00
	wayWatched                                                              = 7 // of the programs alone
)

type fileForger struct {
	*forgedWorld
	t     *testing.T
	place map[string]uint64
	asked *forgedOpen
	look  *ebpf.Program
}

func newFileForger(t *testing.T) *fileForger {
	t.Helper()
	w := newForgedWorld(t)
	spec := mapleSpec(t, &w.ram, "look_forged")
	at := filePlaces(w.types, moduleTypes)
	if err := setValues(spec, map[string]any{"cfg_wait": uint32(1), "cfg_files": uint32(1), "cfg_place": at}); err != nil {
		t.Fatal(err)
	}
	coll, err := ebpf.NewCollection(spec)
	mustLoad(t, err)
	t.Cleanup(coll.Close)
	mem, err := mmap(coll.Maps["forged_files"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	x := &fileForger{forgedWorld: w, t: t, place: map[string]uint64{}, asked: (*forgedOpen)(unsafe.Pointer(&mem[0])), look: coll.Programs["look_forged"]}
	for i, p := range placeNames {
		x.place[p.name] = uint64(at[i])
	}
	return x
}

// build makes the page anew: an open pipe with 7 bytes.
func (x *fileForger) build() {
	clear(x.page)
	x.put(ffFile+x.place["P_FILE_INODE"], x.at+ffInode)
	x.put(ffFile+x.place["P_FILE_PRIVATE"], x.at+ffPrivate)
	x.put(ffFile+x.place["P_FILE_DENTRY"], x.at+ffDentry)
	x.put(ffDentry+x.place["P_DENTRY_NAME"], x.at+ffName)
	x.put(ffInode+x.place["P_INODE_SB"], x.at+ffSuper)
	x.put(ffInode+x.place["P_INODE_INO"], 77)
	x.mode(unix.S_IFIFO)
	x.put(ffSuper+x.place["P_SB_MAGIC"], 0x50495045)
	u32 := func(name string, v uint32) { binary.NativeEndian.PutUint32(x.page[ffPrivate+x.place[name]:], v) }
	x.put(ffPrivate+x.place["P_PIPE_BUFS"], x.at+ffBufs)
	u32("P_PIPE_HEAD", 3)
	u32("P_PIPE_TAIL", 2)
	u32("P_PIPE_USAGE", 16)
	u32("P_PIPE_RING", 4)
	binary.NativeEndian.PutUint32(x.page[ffBufs+2*x.place["P_BUF_SIZE"]+x.place["P_BUF_LEN"]:], 7)
}

func (x *fileForger) mode(mode uint16) {
	binary.NativeEndian.PutUint16(x.page[ffInode+x.place["P_INODE_MODE"]:], mode)
}

func (x *fileForger) run(file uint64) forgedOpen {
	x.t.Helper()
	*x.asked = forgedOpen{File: file}
	x.drive()
	return *x.asked
}

// drive runs the program for this process.
func (x *fileForger) drive() {
	x.t.Helper()
	x.forgedWorld.run(x.t, x.look)
}

// Whatever a file leads to that is not ordinary memory is not followed, and its record says so.
func TestForgedFiles(t *testing.T) {
	testneed.Live(t)
	x := newFileForger(t)
	x.build()
	whole := x.run(x.at)
	if f := whole.V; whole.N != 1 || f.Kind != kcdata.FilePipe || f.Bytes != 7 || f.Inode != 77 || f.Flags != 0 || f.Object != x.at+ffPrivate {
		t.Fatalf("a whole pipe: %+v", whole)
	}
	x.find(t, 2) // tells where the copy in vmalloc memory is
	copy(x.twin, x.page)
	copy(x.copies, x.page)
	links := map[string]struct{ at, to uint64 }{
		"inode": {ffFile + x.place["P_FILE_INODE"], ffInode}, "superblock": {ffInode + x.place["P_INODE_SB"], ffSuper},
		"private": {ffFile + x.place["P_FILE_PRIVATE"], ffPrivate},
	}
	for why, addr := range x.hostile(0) {
		if got := x.run(addr); got.V.Flags != kcdata.FileUnread || got.V.Inode != 0 || got.V.Object != 0 {
			t.Errorf("file %s: %+v", why, got.V)
		}
		for name, l := range links {
			x.build()
			x.put(l.at, addr+l.to)
			if got := x.run(x.at); got.V.Flags&kcdata.FileUnread == 0 || got.V.Bytes != 0 || got.N != 1 {
				t.Errorf("%s %s: %+v", name, why, got.V)
			}
		}
		x.build()
		x.put(ffPrivate+x.place["P_PIPE_BUFS"], addr+ffBufs)
		if got := x.run(x.at); got.V.Bytes != 0 {
			t.Errorf("buffers %s: %+v", why, got.V)
		}
	}
}

// A table of descriptors: one that is open, one that is not, one behind its end, and tables that
// are nowhere.
func TestForgedTableOfFiles(t *testing.T) {
	testneed.Live(t)
	x := newFileForger(t)
	const files, fdt, array = ffSecond, ffSecond + 0x100, ffSecond + 0x200
	build := func() {
		x.build()
		x.put(files+x.place["P_FILES_FDT"], x.at+fdt)
		x.put(fdt+x.place["P_FDT_MAX"], 4)
		x.put(fdt+x.place["P_FDT_FD"], x.at+array)
		x.put(array+2*8, x.at+ffFile)
	}
	look := func(fd, at uint64) kcdata.LinuxFile {
		*x.asked = forgedOpen{Files: at, Fd: fd}
		x.drive()
		return x.asked.V
	}
	build()
	if got := look(2, x.at+files); got.Inode != 77 || got.Flags != 0 || got.Fd != 2 {
		t.Errorf("an open one: %+v", got)
	}
	for _, fd := range []uint64{1, 3, 4, 5, 1 << 20, 0xffff_ffff} {
		if got := look(fd, x.at+files); got.Flags != kcdata.FileClosed || got.File != 0 {
			t.Errorf("descriptor %d: %+v", fd, got)
		}
	}
	x.find(t, 2) // tells where the copy in vmalloc memory is
	copy(x.twin, x.page)
	copy(x.copies, x.page)
	for why, addr := range x.hostile(0) {
		build()
		if got := look(2, addr+files); got.Flags != kcdata.FileUnread {
			t.Errorf("files %s: %+v", why, got)
		}
		x.put(files+x.place["P_FILES_FDT"], addr+fdt)
		if got := look(2, x.at+files); got.Flags != kcdata.FileUnread {
			t.Errorf("table %s: %+v", why, got)
		}
		build()
		x.put(fdt+x.place["P_FDT_FD"], addr+array)
		if got := look(2, x.at+files); got.Flags != kcdata.FileUnread {
			t.Errorf("array %s: %+v", why, got)
		}
		// Its bitmaps say that a table in vmalloc memory is whole.
		x.put(fdt+x.place["P_FDT_MAX"], 1024)
		x.put(fdt+x.place["P_FDT_OPEN"], x.at+0x100)
		x.put(fdt+x.place["P_FDT_EXEC"], x.at+0x100+1024/8)
		if got := look(2, x.at+files); why == "vmalloc" && (got.Inode != 77 || got.Flags != 0) {
			t.Errorf("a large table: %+v", got)
		}
	}
}

// A tree of an epoll that leads in a ring ends.
func TestForgedEpollEnds(t *testing.T) {
	testneed.Live(t)
	x := newFileForger(t)
	x.build()
	x.put(ffSecond+x.place["P_NODE_LEFT"], x.at+ffSecond)
	x.put(ffSecond+x.place["P_NODE_RIGHT"], x.at+ffSecond)
	x.put(ffSecond, x.at+ffSecond)
	*x.asked = forgedOpen{Way: wayWatched, Node: x.at + ffSecond}
	x.drive()
	if x.asked.N > MaxFiles {
		t.Errorf("%d files of a ring", x.asked.N)
	}
}

// Random words, random pointers into the page: the look ends, and what it says is bounded.
func TestForgedFilesAnywhere(t *testing.T) {
	testneed.Live(t)
	x := newFileForger(t)
	r := rand.New(rand.NewPCG(1, 2))
	magics := []uint64{0x50495045, 0x534F434B, 0x09041934, 0x50494446, 0}
	const window = kcdata.FileToRead | kcdata.FileClosed | kcdata.FileUnread | kcdata.FileEmpty | kcdata.FileFull | kcdata.FileOpaque | kcdata.FilePeerKnown | kcdata.FileTimed
	for i := range 2000 {
		x.build()
		x.mode(uint16(r.Uint32()))
		x.put(ffSuper+x.place["P_SB_MAGIC"], magics[r.IntN(len(magics))])
		for at := uint64(ffPrivate); at < 0x1000; at += 8 {
			switch r.IntN(3) {
			case 0:
				x.put(at, r.Uint64())
			case 1:
				x.put(at, x.at+uint64(r.IntN(512))*8)
			}
		}
		if got := x.run(x.at); got.N != 1 || got.V.Flags&^window != 0 || got.V.Kind > kcdata.FileIOUring || got.V.Inode != 77 {
			t.Fatalf("%d: %+v", i, got)
		}
	}
}
