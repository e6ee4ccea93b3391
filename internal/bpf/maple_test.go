package bpf

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/testneed"
)

// mapleAnswer mirrors struct answer.
type mapleAnswer struct{ Addr, Start, End, Flags, StackEnd uint64 }

const mapleAsked = 4096

type mapleFinder struct {
	coll    *ebpf.Collection
	prog    *ebpf.Program
	answers []mapleAnswer
}

// newMapleFinder loads the program; forgetful, it keeps no leaf between look-ups.
func newMapleFinder(t testing.TB, forgetful bool) *mapleFinder {
	t.Helper()
	o, err := Load(Config{CPUs: 1, SelfTgid: uint32(os.Getpid())})
	mustLoad(t, err)
	o.Close()
	return newFinder(t, "find_vmas", forgetful)
}

// mapleSpec is the object of mapletest.bpf.c with some of its programs.
func mapleSpec(t testing.TB, m *DirectMap, programs ...string) *ebpf.CollectionSpec {
	t.Helper()
	spec, err := bpftest.LoadMaple()
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return !slices.Contains(programs, name) })
	if err := errors.Join(setDirectMap(spec, m), setValues(spec, map[string]uint32{"cfg_page_shift": pageShift()})); err != nil {
		t.Fatal(err)
	}
	return spec
}

func newFinder(t testing.TB, program string, forgetful bool) *mapleFinder {
	t.Helper()
	spec := mapleSpec(t, directMapHere(t), program)
	if err := setValues(spec, map[string]uint32{"cfg_asked": mapleAsked, "cfg_forget": Flag(forgetful)}); err != nil {
		t.Fatal(err)
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(coll.Close)
	mem, err := mmap(coll.Maps["answers"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	return &mapleFinder{coll, coll.Programs[program], unsafe.Slice((*mapleAnswer)(unsafe.Pointer(&mem[0])), mapleAsked)}
}

// find has this process's mappings looked up at the addresses in answers.
func (f *mapleFinder) find(t testing.TB) {
	t.Helper()
	var pass Iterator
	scope := TaskScope(uint32(os.Getpid()))
	if errno := pass.Open(f.prog.FD(), &scope); errno != 0 {
		t.Fatal(errno)
	}
	defer pass.Close()
	if _, errno := pass.Read(make([]byte, 16)); errno != 0 {
		t.Fatal(errno)
	}
}

// span is a line of /proc/self/maps.
type span struct {
	start, end uint64
	perms      string
}

func (s *span) flags() (f uint64) {
	for i, c := range "rwx" {
		if s.perms[i] == byte(c) {
			f |= 1 << i
		}
	}
	return f
}

func ownSpans(t testing.TB) (out []span) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var s span
		if _, err := fmt.Sscanf(line, "%x-%x %s", &s.start, &s.end, &s.perms); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(line, "[vsyscall]") { // lent to every process, and in no tree
			out = append(out, s)
		}
	}
	return out
}

func spanAt(spans []span, addr uint64) *span {
	i, _ := slices.BinarySearchFunc(spans, addr, func(s span, a uint64) int {
		if s.end <= a {
			return -1
		}
		return 1
	})
	if i < len(spans) && spans[i].start <= addr {
		return &spans[i]
	}
	return nil
}

// ask chooses addresses: edges of mappings and both sides of them, then anywhere
// near one, then anywhere.
func (f *mapleFinder) ask(spans []span) {
	for i := range f.answers {
		s := spans[rand.IntN(len(spans))]
		size := s.end - s.start
		f.answers[i].Addr = []uint64{
			s.start, s.start - 1, s.end, s.end - 1, s.start + rand.Uint64N(size), s.start + rand.Uint64N(4*size), rand.Uint64N(1 << 47), rand.Uint64(),
		}[i%8]
	}
}

func (f *mapleFinder) check(t *testing.T, spans []span) {
	t.Helper()
	for _, a := range f.answers {
		want := mapleAnswer{Addr: a.Addr}
		if s := spanAt(spans, a.Addr); s != nil {
			want.Start, want.End, want.Flags = s.start, s.end, s.flags()
			if want.Flags&3 == 3 {
				want.StackEnd = s.end
			}
		}
		if a.Flags &= 7; a != want {
			t.Fatalf("at %#x: %x, /proc says %x", a.Addr, a, want)
		}
	}
}

// mapMany gives this process n mappings more, no two alike that touch, with gaps
// of all sizes between some.
func mapMany(t testing.TB, n int) {
	t.Helper()
	if n == 0 {
		return
	}
	p := uintptr(os.Getpagesize())
	size := 4 * uintptr(n) * p
	base, _, errno := unix.Syscall6(unix.SYS_MMAP, 0, size, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE, ^uintptr(0), 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	if _, _, errno := unix.Syscall(unix.SYS_MUNMAP, base, size, 0); errno != 0 {
		t.Fatal(errno)
	}
	var ours []uintptr
	t.Cleanup(func() {
		for _, at := range ours {
			unix.Syscall(unix.SYS_MUNMAP, at, p, 0)
		}
	})
	at := base
	for i := range n {
		prot := uintptr([]int{unix.PROT_READ, unix.PROT_READ | unix.PROT_WRITE, unix.PROT_READ | unix.PROT_EXEC}[i%3])
		_, _, errno := unix.Syscall6(unix.SYS_MMAP, at, p, prot, unix.MAP_FIXED_NOREPLACE|unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uintptr(0), 0)
		switch errno {
		case 0:
			ours = append(ours, at)
		case unix.EEXIST: // the runtime was quicker
		default:
			t.Fatal(errno)
		}
		at += p * (1 + uintptr(rand.IntN(4)*rand.IntN(2)))
	}
}

// What the tree says of an address is what /proc says, however deep the tree is,
// with the leaf at hand and without.
func TestMapleTreeIsWhatProcSays(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	for _, forgetful := range []bool{false, true} {
		f := newMapleFinder(t, forgetful)
		for _, n := range []int{0, 10, 200, 3000, 40000} {
			t.Run(fmt.Sprint(n, forgetful), func(t *testing.T) {
				mapMany(t, n)
				f.compare(t)
			})
		}
	}
}

func (f *mapleFinder) compare(t *testing.T) {
	t.Helper()
	for range 20 {
		before := ownSpans(t)
		f.ask(before)
		f.find(t)
		if after := ownSpans(t); slices.Equal(before, after) {
			f.check(t, before)
			return
		}
	}
	t.Error("our own mappings did not stand still in 20 goes")
}

// Stacks often lie beside each other: mappings are asked for in their order.
func BenchmarkMapleStackEnd(b *testing.B) {
	for _, n := range []int{mapleAsked, 40000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			keeping, forgetting := newMapleFinder(b, false), newMapleFinder(b, true)
			mapMany(b, n)
			spans := ownSpans(b)
			for i := range mapleAsked {
				keeping.answers[i].Addr = spans[i].end - 16
			}
			copy(forgetting.answers, keeping.answers)
			keeping.find(b) // the first brings it all into the caches
			var took [2]time.Duration
			for b.Loop() {
				for i, f := range []*mapleFinder{keeping, forgetting} {
					start := time.Now()
					f.find(b)
					took[i] += time.Since(start)
				}
			}
			b.ReportMetric(float64(took[0])/float64(took[1]), "kept-leaf/descent")
			b.ReportMetric(float64(took[1])/float64(b.N)/(2*mapleAsked), "ns/descent")
		})
	}
}
