package panicregion_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"stackshot/internal/bpf"
	"stackshot/internal/panicregion"
)

// headOf is a head whose walk is r, with the sum that the BPF program writes.
func headOf(r *bpf.PanicRun) []byte {
	head := make([]byte, panicregion.PageSize)
	b := unsafe.Slice((*byte)(unsafe.Pointer(r)), unsafe.Sizeof(*r))
	sum := uint64(0xcbf29ce484222325)
	for at := int(unsafe.Offsetof(r.Hook)); at < int(unsafe.Offsetof(r.Sum)); at += 8 {
		sum = (sum ^ binary.LittleEndian.Uint64(b[at:])) * 0x100000001b3
	}
	if r.Ended != 0 {
		r.Sum = sum
	}
	copy(head[panicregion.RunAt:], b)
	return head
}

func put(to []int8, s string) {
	for i := range s {
		to[i] = int8(s[i])
	}
}

// Each field of the program's struct is read where it lies: filled with random bytes, all come back.
func TestWalkIsThePrograms(t *testing.T) {
	var r bpf.PanicRun
	if panicregion.WalkBytes != int(unsafe.Sizeof(r)) || panicregion.RunAt != bpf.PanicRunAt {
		t.Fatalf("%d bytes at %d, the program has %d at %d", panicregion.WalkBytes, panicregion.RunAt, unsafe.Sizeof(r), bpf.PanicRunAt)
	}
	for range 100 {
		b := unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r))
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		r.State, r.Outcome, r.Hook = 2+rand.Uint64N(2), 1+rand.Uint32N(3), 1+rand.Uint32N(3)
		w, err := panicregion.ReadWalk(headOf(&r))
		if err != nil {
			t.Fatal(err)
		}
		from, to := reflect.ValueOf(r), reflect.ValueOf(*w)
		for i := range to.NumField() {
			name := to.Type().Field(i).Name
			f := from.FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, name) })
			switch {
			case name == "Computed":
				continue
			case !f.IsValid() && to.Type().Field(i).IsExported():
				t.Errorf("the program has no %s", name)
			case f.IsValid() && f.CanUint() && f.Uint() != to.Field(i).Uint():
				t.Errorf("%s: %#x, want %#x", name, to.Field(i).Uint(), f.Uint())
			}
		}
		if w.Args != r.Args {
			t.Errorf("args %#x, want %#x", w.Args, r.Args)
		}
		for name, text := range map[string][]int8{w.Comm: r.Comm[:], w.Format: r.Format[:], w.Text[3]: r.Text[3][:]} {
			if raw := unsafe.String((*byte)(unsafe.Pointer(&text[0])), len(text)); !strings.HasPrefix(raw+"\x00", name) || strings.ContainsRune(name, 0) {
				t.Errorf("%q, want %q", name, raw)
			}
		}
	}
}

// Any flipped bit behind the first line is seen, once the walk has ended.
func TestWalkSumSeesEveryBit(t *testing.T) {
	r := bpf.PanicRun{State: panicregion.StateLeft, Hook: panicregion.HookPanic, Outcome: panicregion.Whole, Began: 5, Ended: 7, Bytes: 100}
	head := headOf(&r)
	if w, err := panicregion.ReadWalk(head); err != nil || w.Bytes != 100 {
		t.Fatal(w, err)
	}
	for bit := int(unsafe.Offsetof(r.Hook)) * 8; bit < panicregion.WalkBytes*8; bit++ {
		at := panicregion.RunAt + bit/8
		head[at] ^= 1 << (bit % 8)
		if w, err := panicregion.ReadWalk(head); !errors.Is(err, panicregion.ErrDamaged) || w == nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
		head[at] ^= 1 << (bit % 8)
	}
}

func TestMessage(t *testing.T) {
	for _, c := range []struct {
		format string
		args   [6]uint64
		text   [4]string
		want   string
	}{
		{"sysrq triggered crash\n", [6]uint64{}, [4]string{}, "sysrq triggered crash"},
		{"Fatal exception%s", [6]uint64{1}, [4]string{" in interrupt"}, "Fatal exception in interrupt"},
		{"VFS: Unable to mount root fs on %s or %s", [6]uint64{1, 2}, [4]string{`"" `, "unknown-block(0,0)"}, `VFS: Unable to mount root fs on "" or unknown-block(0,0)`},
		{"Attempted to kill init! exitcode=0x%08x\n", [6]uint64{0xffffffff_00000b00}, [4]string{}, "Attempted to kill init! exitcode=0x00000b00"},
		{"%d %i %u %ld %hhd %c%%", [6]uint64{0xfffffffe, 3, 1<<32 - 1, ^uint64(0), 0x1ff, 'x'}, [4]string{}, "-2 3 4294967295 -1 -1 x%"},
		{"at %pS, %p of %lx", [6]uint64{9, 0xabc, 1 << 40}, [4]string{}, "at %pS, 0xabc of 10000000000"},
		{"%s and %s", [6]uint64{1, 2}, [4]string{"read"}, "read and %s"},
		{"a%", [6]uint64{}, [4]string{}, "a%"},
		{"a %Z %d", [6]uint64{7}, [4]string{}, "a %Z 7"},
		{"%*d %d", [6]uint64{4, 5, 6}, [4]string{}, "%*d 6"},
		{"%d %d %d %d %d %d %d", [6]uint64{1, 2, 3, 4, 5, 6}, [4]string{}, "1 2 3 4 5 6 %d"},
		{strings.Repeat("x", 128), [6]uint64{}, [4]string{}, strings.Repeat("x", 128) + "…"},
		{"%s", [6]uint64{1}, [4]string{strings.Repeat("y", 63)}, strings.Repeat("y", 63) + "…"},
		{"\xff\x01", [6]uint64{}, [4]string{}, "?\x01"},
		{"", [6]uint64{}, [4]string{}, ""},
	} {
		r := bpf.PanicRun{State: panicregion.StateLeft, Hook: panicregion.HookPanic, Outcome: panicregion.Whole, Ended: 1, Args: c.args}
		put(r.Format[:], c.format)
		for i, s := range c.text {
			if put(r.Text[i][:], s); s != "" {
				r.Texts |= 1 << i
			}
		}
		w, err := panicregion.ReadWalk(headOf(&r))
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Message(); got != c.want {
			t.Errorf("%q: %q, want %q", c.format, got, c.want)
		}
	}
}

// No format makes Message fail or grow without bound.
func FuzzMessage(f *testing.F) {
	f.Add("%s %-08.3lx%pS%*d", uint64(5), "text")
	f.Add("%99999999999d%.9999999s", uint64(5), "text")
	f.Fuzz(func(t *testing.T, format string, arg uint64, text string) {
		r := bpf.PanicRun{State: panicregion.StateLeft, Hook: panicregion.HookPanic, Outcome: panicregion.Whole, Ended: 1, Texts: 15}
		for i := range r.Args {
			r.Args[i] = arg
		}
		put(r.Format[:], format[:min(len(format), 128)])
		for i := range r.Text {
			put(r.Text[i][:], text[:min(len(text), 64)])
		}
		w, err := panicregion.ReadWalk(headOf(&r))
		if err != nil {
			t.Fatal(err)
		}
		if s := w.Message(); len(s) > 2<<20 || strings.ContainsRune(s, '\n') {
			t.Errorf("%d bytes of %q", len(s), format)
		}
	})
}
