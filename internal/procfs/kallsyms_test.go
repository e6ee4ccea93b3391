package procfs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// kallsymsText has what the real file has: per-CPU offsets, aliases, data,
// equal names, a module, a BPF program, in no particular order behind vmlinux.
const kallsymsText = `0000000000000000 A fixed_percpu_data
000000000001a000 A cpu_number
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000040 t cleanup
ffffffff81000060 T vfs_read
ffffffff81000100 t cleanup
ffffffff81000180 W arch_weak
ffffffff81000200 T _etext
ffffffff82000000 D jiffies
ffffffffc0201000 t nfs_read	[nfs]
ffffffffc0201100 t cleanup	[nfs]
ffffffffc0100000 t early	[early_mod]
ffffffffc0300000 t bpf_prog_6deef7357e7b4530_sd_fw	[bpf]
`

func mustKallsyms(t testing.TB, text string) *Kallsyms {
	t.Helper()
	k, err := ParseKallsyms(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKallsymsResolve(t *testing.T) {
	k := mustKallsyms(t, kallsymsText)
	for _, c := range []struct {
		addr uint64
		want string
	}{
		{0xffffffff81000000, "_stext+0x0/0x40"},
		{0xffffffff81000041, "cleanup+0x1/0x20"},
		{0xffffffff810000ff, "vfs_read+0x9f/0xa0"},
		{0xffffffff81000180, "arch_weak+0x0/0x80"},
		{0xffffffffc0100010, "early+0x10/0x0 [early_mod]"},
		{0xffffffffc0201008, "nfs_read+0x8/0x100 [nfs]"},
		{0xffffffffc0300100, "bpf_prog_6deef7357e7b4530_sd_fw+0x100/0x0 [bpf]"},
		{0, ""}, {0x1a008, ""}, {0xffffffff80ffffff, ""}, {1<<64 - 1, ""},
		{0xffffffff82000000, ""},          // data: behind _etext, too far to be its
		{0xffffffffc0100000 + 64<<10, ""}, // between modules
	} {
		s, ok := k.Resolve(c.addr)
		got := ""
		if ok {
			got = fmt.Sprintf("%s+%#x/%#x", s.Name, s.Offset, s.Size)
			if s.Module != "" {
				got += " [" + s.Module + "]"
			}
		}
		if got != c.want {
			t.Errorf("Resolve(%#x) = %q, want %q", c.addr, got, c.want)
		}
	}
	if k.TextAddr() != 0xffffffff81000000 || k.Hidden() || k.Len() != 11 {
		t.Errorf("text %#x, hidden %v, %d symbols", k.TextAddr(), k.Hidden(), k.Len())
	}
}

func TestKallsymsResolveReturn(t *testing.T) {
	k := mustKallsyms(t, "ffffffff81000000 T a\nffffffff81000010 T b\nffffffff81000020 T ret_from_fork_asm\nffffffff81000030 T c\n")
	for _, c := range []struct {
		addr uint64
		want string
		off  uint64
	}{{0xffffffff81000005, "a", 5}, {0xffffffff81000010, "a", 16}, {0xffffffff81000020, "ret_from_fork_asm", 0}, {0xffffffff81000030, "ret_from_fork_asm", 16}} {
		if s, ok := k.ResolveReturn(c.addr); !ok || s.Name != c.want || s.Offset != c.off {
			t.Errorf("ResolveReturn(%#x) = %v, %v; want %s+%d", c.addr, s, ok, c.want, c.off)
		}
	}
}

func TestKallsymsLookup(t *testing.T) {
	k := mustKallsyms(t, kallsymsText)
	for _, c := range []struct {
		name, module string
		size, want   uint64
		err          error
	}{
		{"vfs_read", "", 0xa0, 0xffffffff81000060, nil},
		{"vfs_read", "", 1, 0xffffffff81000060, nil}, // alone: the size does not matter
		{"cleanup", "", 0x20, 0xffffffff81000040, nil},
		{"cleanup", "", 0x80, 0xffffffff81000100, nil},
		{"cleanup", "", 0x30, 0, ErrKallsymsAmbiguous},
		{"cleanup", "nfs", 0x55, 0xffffffffc0201100, nil},
		{"bpf_prog_6deef7357e7b4530_sd_fw", "", 0x44, 0xffffffffc0300000, nil},
		{"nfs_read", "", 0x100, 0, ErrKallsymsUnknown},
		{"vfs_read", "nfs", 0xa0, 0, ErrKallsymsUnknown},
		{"jiffies", "", 0, 0, ErrKallsymsUnknown},
		{"", "", 0, 0, ErrKallsymsUnknown},
	} {
		got, err := k.Lookup(c.name, c.module, c.size)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("Lookup(%q, %q, %#x) = %#x, %v; want %#x, %v", c.name, c.module, c.size, got, err, c.want, c.err)
		}
	}
}

func TestKallsymsHidden(t *testing.T) {
	k := mustKallsyms(t, "0000000000000000 T _text\n0000000000000000 T vfs_read\n")
	if !k.Hidden() || k.TextAddr() != 0 || k.Len() != 0 {
		t.Errorf("hidden %v, text %#x, %d symbols", k.Hidden(), k.TextAddr(), k.Len())
	}
	if s, ok := k.Resolve(0); ok {
		t.Errorf("Resolve(0) = %v", s)
	}
}

func TestKallsymsRefuses(t *testing.T) {
	for _, text := range []string{"", "\n", "x", "ffffffff81000000", "ffffffff81000000 T ", "ffffffff81000000 Tname", "00000ffffffff81000000 T a", "FFFF T a"} {
		if k, err := ParseKallsyms(text); k != nil || !errors.Is(err, ErrKallsymsFormat) {
			t.Errorf("ParseKallsyms(%q) = %v, %v", text, k, err)
		}
	}
}

// TestKallsymsReal holds the table against the running kernel's own naming:
// the frames of /proc/self/stack turn into addresses and back.
func TestKallsymsReal(t *testing.T) {
	k, err := ReadKallsyms("/proc")
	if err != nil {
		t.Fatal(err)
	}
	if k.Hidden() {
		if k.TextAddr() != 0 {
			t.Errorf("hidden, but _text is %#x", k.TextAddr())
		}
		return
	}
	for i := range k.syms {
		s := &k.syms[i]
		if i > 0 && s.addr < k.syms[i-1].addr {
			t.Fatalf("not sorted at %d", i)
		}
		got, ok := k.Resolve(s.addr)
		if !ok || got.Offset != 0 {
			t.Fatalf("Resolve(%#x) = %v, %v; want the start of %s", s.addr, got, ok, k.nameOf(uint32(i)))
		}
		if a, err := k.Lookup(k.nameOf(uint32(i)), k.modules[s.module], uint64(s.size)); err != nil {
			if !errors.Is(err, ErrKallsymsAmbiguous) {
				t.Fatal(err)
			}
		} else if a != s.addr {
			t.Fatalf("Lookup(%s) = %#x, want %#x", k.nameOf(uint32(i)), a, s.addr)
		}
	}
	stack, err := os.ReadFile("/proc/self/stack")
	if err != nil {
		return // needs ptrace rights; the table itself is tested above
	}
	for line := range strings.Lines(string(stack)) {
		var name string
		var off, size uint64
		text := strings.NewReplacer("+", " ", "/", " ").Replace(strings.TrimPrefix(line, "[<0>] "))
		if n, _ := fmt.Sscanf(text, "%s 0x%x 0x%x", &name, &off, &size); n != 3 {
			t.Fatalf("line %q", line)
		}
		a, err := k.Lookup(name, "", size)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		s, ok := k.ResolveReturn(a + off)
		alias, _ := k.Lookup(s.Name, "", s.Size)
		if !ok || alias != a || s.Offset != off || s.Size != size {
			t.Errorf("%q: back again %+v", line, s)
		}
	}
}

// FuzzKallsyms: no text panics, and what parses resolves every address to a
// symbol at or below it.
func FuzzKallsyms(f *testing.F) {
	f.Add(kallsymsText, uint64(0xffffffff81000041))
	f.Add("1 t a\t[\n2 t b\t]", uint64(1))
	f.Fuzz(func(t *testing.T, text string, addr uint64) {
		k, err := ParseKallsyms(text)
		if err != nil {
			if k != nil {
				t.Fatal("an error and a table")
			}
			return
		}
		if s, ok := k.Resolve(addr); ok {
			if s.Offset > addr || s.Size != 0 && s.Offset >= s.Size {
				t.Fatalf("Resolve(%#x) = %+v", addr, s)
			}
			if a, err := k.Lookup(s.Name, s.Module, s.Size); err == nil && a+s.Offset > addr {
				t.Fatalf("Lookup(%+v) = %#x, above %#x", s, a, addr)
			} else if err != nil && !errors.Is(err, ErrKallsymsAmbiguous) {
				t.Fatal(err)
			}
		}
		k.ResolveReturn(addr)
	})
}

// syntheticKallsyms is a file of n symbols in the real form.
func syntheticKallsyms(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%016x t some_kernel_function_%d\n", 0xffffffff81000000+uint64(i)*0x80, i)
	}
	return b.String()
}

func BenchmarkParseKallsyms(b *testing.B) {
	text := syntheticKallsyms(200_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseKallsyms(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkKallsymsResolve(b *testing.B) {
	k := mustKallsyms(b, syntheticKallsyms(200_000))
	b.ReportAllocs()
	addr := uint64(0xffffffff81000000)
	for b.Loop() {
		k.Resolve(addr)
		addr = 0xffffffff81000000 + (addr*2862933555777941757+3037000493)%(200_000*0x80)
	}
}

func BenchmarkKallsymsLookup(b *testing.B) {
	k := mustKallsyms(b, syntheticKallsyms(200_000))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Lookup("some_kernel_function_77777", "", 0x80); err != nil {
			b.Fatal(err)
		}
	}
}
