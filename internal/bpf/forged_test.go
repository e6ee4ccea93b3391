package bpf

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"runtime"
	"structs"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// forged mirrors struct forged (mapletest.bpf.c).
type forged struct {
	_            structs.HostLayout
	Addr, MM     uint64
	Root         uint64
	Start, Inode uint64
	Device       uint32
	Refused      uint32
	Flags, Pos   uint32
	Path         [256]byte
	CopyAt       uint64
	Word         uint64
	Why          uint32
}

// path is what was read of one: "" where there is none.
func (f *forged) path() string {
	if f.Pos >= uint32(len(f.Path)) {
		return ""
	}
	return unix.ByteSliceToString(f.Path[f.Pos:])
}

// Where the objects of a made-up mapping lie in its page. They are looked at as far
// as some 400 bytes.
const (
	forgedNode, forgedVMA, forgedFile, forgedDentry   = 0x000, 0x200, 0x400, 0x600
	forgedParent, forgedInode, forgedSuper, forgedMnt = 0x800, 0xa00, 0xc00, 0xd00
	forgedName                                        = 0xf00
	forgedStart, forgedEnd                            = 0x10_0000, 0x20_0000
	forgedMM                                          = 0xabc000
	leaf64                                            = 1 << 3 // enum maple_type, in the encoded pointer
)

// forgedWorld is a page of ours in which a process's mapping stands as the kernel has it:
// a node, the mapping, its file and what leads to the path. at is where the kernel
// sees it; twin is a second such page, of the same content, that is no System RAM;
// copies is a third, in vmalloc memory.
type forgedWorld struct {
	ram                DirectMap
	page, twin, copies []byte
	at, twinAt         uint64
	types              *btf.Spec
	answer             *forged
	finder, walker     *ebpf.Program
}

// offset is where a field lies in a structure of the running kernel, bytes.
func offset(t testing.TB, types *btf.Spec, name string, fields ...string) uint64 {
	t.Helper()
	var s *btf.Struct
	if err := types.TypeByName(name, &s); err != nil {
		t.Fatal(err)
	}
	at, typ := uint32(0), btf.Type(s)
	for _, field := range fields {
		m, off, ok := memberIn(typ, field)
		if !ok {
			t.Fatalf("struct %s has no %v", name, fields)
		}
		at, typ = at+off, m
	}
	return uint64(at)
}

func newForgedWorld(t *testing.T) *forgedWorld {
	t.Helper()
	m := *directMapHere(t)
	types, err := btf.LoadKernelSpec()
	if err != nil {
		t.Fatal(err)
	}
	size := os.Getpagesize()
	w := &forgedWorld{types: types}
	pages := mapped(t, 2*size, unix.PROT_READ|unix.PROT_WRITE)
	unix.Madvise(pages, unix.MADV_NOHUGEPAGE)
	if err := unix.Mlock(pages); err != nil {
		t.Fatal(err)
	}
	w.page, w.twin = pages[:size], pages[size:]
	where := func(b []byte) uint64 {
		b[0] = 1
		frame, err := pagemap("/proc/self/pagemap")(addrOf(b))
		if err != nil {
			t.Fatal(err)
		}
		return frame << pageShift()
	}
	w.at, w.twinAt = m.Base+where(w.page), m.Base+where(w.twin)
	m.RAM = without(m.RAM, w.twinAt-m.Base)
	w.ram = m

	coll, err := ebpf.NewCollection(mapleSpec(t, &m, "find_forged", "walk_forged"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(coll.Close)
	w.finder, w.walker = coll.Programs["find_forged"], coll.Programs["walk_forged"]
	answer, err := mmap(coll.Maps["forgeries"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(answer) })
	w.answer = (*forged)(unsafe.Pointer(&answer[0]))
	if w.copies, err = mmap(coll.Maps["copies"]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(w.copies) })
	return w
}

func (w *forgedWorld) put(at, value uint64) { binary.NativeEndian.PutUint64(w.page[at:], value) }

// links are the pointers of a made-up mapping, by name: where each stands, what it
// leads to, and bits of it that are no address.
func (w *forgedWorld) links(t *testing.T) map[string]struct{ at, to, bits uint64 } {
	in := func(base uint64, name string, fields ...string) uint64 {
		return base + offset(t, w.types, name, fields...)
	}
	return map[string]struct{ at, to, bits uint64 }{
		"mapping":    {in(forgedNode, "maple_range_64", "slot") + 8, forgedVMA, 0},
		"file":       {in(forgedVMA, "vm_area_struct", "vm_file"), forgedFile, 0},
		"inode":      {in(forgedFile, "file", "f_inode"), forgedInode, 0},
		"dentry":     {in(forgedFile, "file", "f_path", "dentry"), forgedDentry, 0},
		"mount":      {in(forgedFile, "file", "f_path", "mnt"), forgedMnt, 0},
		"superblock": {in(forgedInode, "inode", "i_sb"), forgedSuper, 0},
		"name":       {in(forgedDentry, "dentry", "d_name", "name"), forgedName, 0},
		"parent":     {in(forgedDentry, "dentry", "d_parent"), forgedParent, 0},
		"upper name": {in(forgedParent, "dentry", "d_name", "name"), forgedName + 16, 0},
	}
}

// build makes the page anew: /etc/passwd, mapped for execution.
func (w *forgedWorld) build(t *testing.T) {
	t.Helper()
	clear(w.page)
	in := func(base uint64, name string, fields ...string) uint64 {
		return base + offset(t, w.types, name, fields...)
	}
	pivot := in(forgedNode, "maple_range_64", "pivot")
	w.put(forgedNode, w.at+0x3000) // a parent
	w.put(pivot, forgedStart-1)
	w.put(pivot+8, forgedEnd-1)
	w.page[in(forgedNode, "maple_range_64", "meta", "end")] = 2 // the last slot in use
	w.put(in(forgedVMA, "vm_area_struct", "vm_start"), forgedStart)
	w.put(in(forgedVMA, "vm_area_struct", "vm_end"), forgedEnd)
	w.put(in(forgedVMA, "vm_area_struct", "vm_mm"), forgedMM)
	w.put(in(forgedVMA, "vm_area_struct", "vm_flags"), 5)
	w.put(in(forgedInode, "inode", "i_ino"), 77)
	w.put(in(forgedSuper, "super_block", "s_dev"), 8<<20|3)
	w.put(in(forgedDentry, "dentry", "d_hash", "pprev"), 1)
	binary.NativeEndian.PutUint32(w.page[in(forgedDentry, "dentry", "d_name", "len"):], 6)
	binary.NativeEndian.PutUint32(w.page[in(forgedParent, "dentry", "d_name", "len"):], 3)
	w.put(in(forgedParent, "dentry", "d_parent"), w.at+forgedParent) // no directory above
	copy(w.page[forgedName:], "passwd")
	copy(w.page[forgedName+16:], "etc")
	for _, l := range w.links(t) {
		w.put(l.at, w.at+l.to)
	}
	copy(w.twin, w.page)
	copy(w.copies, w.page)
}

// find has the page's mapping looked up.
func (w *forgedWorld) find(t *testing.T, root uint64) forged {
	t.Helper()
	w.answer.Addr, w.answer.MM, w.answer.Root = forgedStart+0x1000, forgedMM, root
	return w.run(t, w.finder)
}

// walk has the word at va read by page tables of which the first is at root.
func (w *forgedWorld) walk(t *testing.T, root, va uint64) word {
	t.Helper()
	w.answer.Addr, w.answer.Root = va, root
	got := w.run(t, w.walker)
	return word{got.Word, got.Why}
}

// run is one pass of a program over this process.
func (w *forgedWorld) run(t *testing.T, prog *ebpf.Program) forged {
	t.Helper()
	var pass Iterator
	scope := TaskScope(uint32(os.Getpid()))
	if errno := pass.Open(prog.FD(), &scope); errno != 0 {
		t.Fatal(errno)
	}
	defer pass.Close()
	if _, errno := pass.Read(make([]byte, 16)); errno != 0 {
		t.Fatal(errno)
	}
	return *w.answer
}

// hostile are addresses that no pointer of the kernel's leads to: some hold the very
// bytes that are looked for. at: of an object in the page.
func (w *forgedWorld) hostile(at uint64) map[string]uint64 {
	m := &w.ram
	last := m.RAM[len(m.RAM)-1].End
	return map[string]uint64{
		"not in System RAM": w.twinAt + at, "vmalloc": w.answer.CopyAt + at, "a user's": addrOf(w.page) + at,
		"not canonical": 0x1234_5678_0000_0000 + at, "behind the last of RAM": m.Base + last + at,
		"before the first": m.Base - 0x1000 + at, "nearly the end": ^uint64(0xfff) + at, "page 0": at,
		"tagged, a user's": 0xff7f_0000_0000_0000 + at,
	}
}

// Whatever a tree leads to that is not ordinary memory is not followed, though it may
// look like what is looked for: the walk ends, and counts and marks it.
func TestNothingButOrdinaryMemoryIsFollowed(t *testing.T) {
	testneed.Live(t)
	w := newForgedWorld(t)
	w.build(t)
	root := func(at uint64) uint64 { return at | leaf64 | 2 }
	whole := w.find(t, root(w.at+forgedNode))
	if whole.Start != forgedStart || whole.Inode != 77 || whole.Device != 8<<20|3 || whole.path() != "/etc/passwd" || whole.Refused != 0 || whole.Flags != kcdata.MappingInWindow {
		t.Fatalf("a whole tree: %+v, path %q", whole, whole.path())
	}
	for why, addr := range w.hostile(forgedNode) {
		if got := w.find(t, root(addr)); got.Start != 0 || got.Refused != 1 {
			t.Errorf("node %s (%#x): start %#x, %d refused", why, addr, got.Start, got.Refused)
		}
	}
	for name, l := range w.links(t) {
		for why, addr := range w.hostile(l.to) {
			w.build(t)
			w.put(l.at, addr)
			w.check(t, fmt.Sprintf("%s %s (%#x)", name, why, addr), name, w.find(t, root(w.at+forgedNode)))
		}
	}
	w.build(t)
	w.put(w.links(t)["mapping"].at, w.at+forgedVMA+4)
	if got := w.find(t, root(w.at+forgedNode)); got.Start != 0 {
		t.Errorf("a mapping at an odd address: start %#x", got.Start)
	}
}

// check judges a find in which one link is hostile.
func (w *forgedWorld) check(t *testing.T, what, link string, got forged) {
	t.Helper()
	if got.Refused == 0 {
		t.Errorf("%s: nothing was refused: %+v, path %q", what, got, got.path())
		return
	}
	if link == "mapping" {
		if got.Start != 0 {
			t.Errorf("%s: start %#x", what, got.Start)
		}
		return
	}
	// How the rest of the path may look: it begins where it had to end.
	want := map[string]string{"upper name": "…/passwd", "parent": "…/passwd"}[link]
	if want == "" {
		want = "…"
	}
	if got.Start != forgedStart || got.Flags&kcdata.MappingUnread == 0 || got.path() != want || got.Flags&kcdata.MappingDeleted != 0 {
		t.Errorf("%s: flags %#x, path %q, want %q", what, got.Flags, got.path(), want)
	}
	if inode := got.Inode == 77; inode == (link == "inode" || link == "file") {
		t.Errorf("%s: inode %d", what, got.Inode)
	}
}

// Which half an address is of: on arm64 bit 55 says, and what lies above is no part of
// it; on amd64 bit 63. With five levels of tables the kernel's begin with 0xff00 there.
func TestKernelsHalf(t *testing.T) {
	testneed.Live(t)
	requireTrap(t) // bpf_rdonly_cast
	f := newFinder(t, "find_halves", false)
	addrs := map[uint64]uint64{
		0: 0, 1: 0, 0x7fff_ffff_f000: 0, 0x3f58: 0, 1<<55 - 1: 0,
		0xffff_8880_0000_0000: 1, 0xffff_0000_0000_0000: 1, ^uint64(7): 1,
	}
	odd := map[uint64]uint64{0xff7f_ffff_ffff_f000: 0, 0x1234_5678_9abc_def0: 0, 1 << 55: 1, 0xf5ff_0000_1234_5678: 1}
	if runtime.GOARCH == "amd64" {
		odd = map[uint64]uint64{0xff11_0000_1234_5678: 1, 0xffa0_0000_0000_0000: 1, 0xff00_0000_0000_0000: 1, 0x00ff_ffff_ffff_f000: 0}
	}
	maps.Copy(addrs, odd)
	i := 0
	for at := range addrs {
		f.answers[i].Addr = at
		i++
	}
	f.find(t)
	for _, a := range f.answers[:i] {
		if want := addrs[a.Addr]; a.Start != want || a.End != want {
			t.Errorf("%#x: as a number %d, as a pointer %d, want %d", a.Addr, a.Start, a.End, addrs[a.Addr])
		}
	}
}
