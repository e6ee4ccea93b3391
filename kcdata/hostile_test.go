package kcdata

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"stackshot/internal/testheap"
	"stackshot/internal/testneed"
)

// Small files that would make much of themselves.

// Deflate has its bound by itself, zstd has none.
func TestK10UnwrapBombs(t *testing.T) {
	z := zstdOf(t, rawItem(MagicStackshot, 0, 0), rawItem(0x7777, 64<<20, 0, make([]byte, 64<<20)...))
	plain, _, err := Unwrap(z, 1<<30)
	wantFormat(t, err, ErrTooLarge)
	if most := freeUnpack + maxRatio*len(z); len(plain) > most || len(plain) < freeUnpack {
		t.Errorf("%d bytes became %d, at most %d", len(z), len(plain), most)
	}
}

// zstdOf is a frame of all parts.
func zstdOf(t testing.TB, parts ...[]byte) []byte {
	var z bytes.Buffer
	w, err := zstd.NewWriter(&z, zstd.WithEncoderConcurrency(1))
	ok(t, err)
	for _, b := range parts {
		_, err = w.Write(b)
		ok(t, err)
	}
	ok(t, w.Close())
	return z.Bytes()
}

// The window that a zstd frame says to need is not taken.
func TestZstdWindow(t *testing.T) {
	frame := []byte{
		0x28, 0xb5, 0x2f, 0xfd, 0x00,
		(27 - 10) << 3,             // window of 128 MiB
		4<<3 | 1<<1 | 1, 0, 0, 'a', // last block: four times this
	}
	testheap.Bound(t, 32<<20, fmt.Sprintf("a frame of %d bytes", len(frame)), func() {
		_, _, err := Unwrap(frame, 1<<30)
		wantFormat(t, err, ErrBadStream)
	})
}

// Strings lie within each other, so that few bytes hold many long ones.
func TestLongStringsWithinEachOther(t *testing.T) {
	const n = 20000
	table := []byte("\x00" + strings.Repeat("s", n+2*maxUserString))
	user, kernel := make([]LinuxUserSymbol, n), make([]LinuxSymbol, n)
	for i := range uint32(n) {
		user[i] = LinuxUserSymbol{Addr: uint64(i), Name: i + 1, Module: i + 2, File: i + 3}
		kernel[i] = LinuxSymbol{Addr: uint64(i), Name: i + 1, Module: i + 2}
	}
	testheap.Bound(t, 32<<20, fmt.Sprintf("%d records over %d bytes", 2*n, len(table)), func() {
		u, k := NewUserSymbolTable(user, table), NewSymbolTable(kernel, table)
		sym, _ := k.Name(n - 1)
		if f := u.Functions(UserPlace{Addr: n - 1}); len(f) != 1 || len(f[0].File) != maxUserString || len(sym.Name) != maxTableString {
			t.Errorf("%d functions, a symbol of %d bytes", len(f), len(sym.Name))
		}
	})
}

func TestEndlessStack(t *testing.T) {
	w := NewWriter(make([]byte, 1<<20))
	for _, err := range []error{
		w.Begin(MagicStackshot), w.BeginContainer(TypeTask, 1), w.BeginContainer(TypeThread, 1),
		w.Uint64s(TypeUserStackLR64, make([]uint64, maxStack-1)), w.Uint64s(TypeUserStackLR64, make([]uint64, 3)),
		w.EndContainer(1), w.EndContainer(1), w.End(),
	} {
		ok(t, err)
	}
	s, err := ParseSnapshot(w.Written())
	ok(t, err)
	if n := len(s.Tasks[0].Threads[0].User); n != maxStack || len(s.Problems) != 1 {
		t.Errorf("%d frames, problems %q", n, s.Problems)
	}
}

// A packed file that was cut, at whatever byte, gives the beginning of its plain form:
// the more, the later the cut; and what is decoded of it are the first of the tasks.
func TestK10CutEnvelopes(t *testing.T) {
	testneed.Slow(t)
	whole := manySmallTasks(t, 4000)
	all, err := ParseSnapshot(whole)
	ok(t, err)
	for e := EnvelopeNone; e <= EnvelopeZstd; e++ {
		var b bytes.Buffer
		ok(t, Compress(&b, whole, e))
		last, step := 0, 1+b.Len()/testneed.Length(60, 500)
		for n := 0; n < b.Len(); n += step {
			plain, _, err := Unwrap(b.Bytes()[:n], 1<<30)
			if e != EnvelopeNone || n < 4 {
				mustBeFormat(t, err)
			}
			if !bytes.HasPrefix(whole, plain) || len(plain) < last {
				t.Fatalf("%v cut to %d of %d bytes gives %d bytes, which do not begin the file; before %d", e, n, b.Len(), len(plain), last)
			}
			if lost := len(whole)*n/b.Len() - len(plain); lost > zstdBlock+zstdBlock/2 {
				t.Fatalf("%v cut to %d of %d bytes: %d bytes less than their share come out", e, n, b.Len(), lost)
			}
			last = len(plain)
			s, err := ParseSnapshot(plain)
			if err == nil || s == nil != (len(plain) < headerSize) {
				t.Fatalf("%v cut to %d of %d bytes: %v", e, n, b.Len(), err)
			}
			if s == nil {
				continue
			}
			for i, task := range s.Tasks {
				if task.ID != all.Tasks[i].ID || i < len(s.Tasks)-1 && len(task.Threads) != 1 {
					t.Fatalf("%v cut to %d of %d bytes: task %d is %d with %d threads", e, n, b.Len(), i, task.ID, len(task.Threads))
				}
			}
		}
	}
}

// manySmallTasks is a file of n tasks with a thread each.
func manySmallTasks(t *testing.T, n int) []byte {
	w := NewWriter(make([]byte, n*400+64))
	ok(t, w.Begin(MagicStackshot))
	for id := range uint64(n) {
		for _, err := range []error{
			w.BeginContainer(TypeTask, id), w.BeginContainer(TypeThread, id),
			w.Struct(TypeLinuxSyscall, LinuxSyscall{Nr: int64(id * 0x9e3779b97f4a7c15 >> 1), IP: id * 0xbf58476d1ce4e5b9}),
			w.EndContainer(id), w.EndContainer(id),
		} {
			ok(t, err)
		}
	}
	ok(t, w.End())
	return w.Written()
}

// A file that goes beyond its memory ends there: the error says where, what and how
// much, and what came before is kept, with its names.
func TestK14MemoryBudget(t *testing.T) {
	w := NewWriter(make([]byte, 1<<20))
	strs := append([]byte{0}, "name\x00"...)
	errs := []error{w.Begin(MagicStackshot), w.Bytes(TypeLinuxStrings, strs), w.StructArray(TypeLinuxSymbol, []LinuxSymbol{{Addr: 7, Name: 1}})}
	for id := range uint64(1000) {
		errs = append(errs, w.BeginContainer(TypeTask, id), w.EndContainer(id))
	}
	for _, err := range append(errs, w.End()) {
		ok(t, err)
	}
	const room = 100*taskCost + 10000
	s, err := ParseSnapshotWithin(w.Written(), room)
	wantFormat(t, err, ErrTooLarge)
	var format *FormatError
	errors.As(err, &format)
	if len(s.Tasks) < 90 || len(s.Tasks) > 110 || format.Offset < 100*48 {
		t.Errorf("%d tasks, %v", len(s.Tasks), err)
	}
	if _, known := s.Symbols.Name(7); !known {
		t.Error("the names of what came before are lost")
	}
	if want := fmt.Sprintf("task %d in the machine's part: %d bytes of memory wanted", len(s.Tasks), taskCost); !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), fmt.Sprint(room)) || !strings.Contains(s.Problems[0], want) {
		t.Errorf("%v\n%q", err, s.Problems)
	}
	if s, err := ParseSnapshot(w.Written()); err != nil || len(s.Tasks) != 1000 {
		t.Errorf("without that limit: %v", err)
	}
}

// What is kept up to a number is counted beyond it.
func TestDroppedIsCounted(t *testing.T) {
	w := NewWriter(make([]byte, 64<<20))
	errs := []error{
		w.Begin(MagicStackshot), w.StructArray(TypeLinuxCPU, make([]LinuxCPU, maxCPUs)), w.StructArray(TypeLinuxCPU, make([]LinuxCPU, 7)),
		w.StructArray(TypeLinuxModule, make([]LinuxModule, maxModules+5)), w.Bytes(TypeLinuxHostname, bytes.Repeat([]byte("h"), maxText+3)),
	}
	for range maxWarnings + 2 {
		errs = append(errs, w.Bytes(TypeLinuxWarning, []byte("w")))
	}
	errs = append(errs, w.BeginContainer(TypeTask, 1), w.StructArray(TypeLinuxMapping, make([]LinuxMapping, maxMappings+9)))
	for range maxNotRead + 4 {
		errs = append(errs, w.Bytes(TypeLinuxEnrichFailed, []byte("f")))
	}
	errs = append(errs, w.StructArray(TypeLinuxUserSymbol, slices.Repeat([]LinuxUserSymbol{{Addr: 1, Name: 1}}, maxInlined+6)),
		w.Bytes(TypeLinuxMapStrings, []byte("\x00n\x00")), w.EndContainer(1), w.End())
	for _, err := range errs {
		ok(t, err)
	}
	s, err := ParseSnapshot(w.Written())
	ok(t, err)
	task := s.Tasks[0]
	if len(s.CPUs) != maxCPUs || len(s.Modules) != maxModules || len(s.Hostname) != maxText || len(s.Warnings) != maxWarnings ||
		len(task.Mappings) != maxMappings || len(task.EnrichFailed) != maxNotRead || len(task.UserSymbols.Functions(UserPlace{Addr: 1})) != maxInlined {
		t.Error("not as many are kept as there may be")
	}
	all := strings.Join(s.Problems, "\n")
	for _, want := range []string{
		"7 elements more than the 65536", "5 elements more than the 8192", "1048579 bytes of text, of which 1048576", "2 warnings more than the 1024",
		"9 elements more than the 65536", "4 reasons why something was not read, more than the 1024", "6 functions more than the 128",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the problems do not say %q:\n%s", want, all)
		}
	}
}

// No array of a type is believed whose elements are smaller than the type ever was.
func TestLeastElement(t *testing.T) {
	for elem := range arrayLimits {
		s, known := Lookup(elem)
		if !known || leastElement(elem) != s.Sizes[0] || s.Sizes[0] < 8 {
			t.Errorf("%v: %d bytes", elem, leastElement(elem))
		}
	}
}
