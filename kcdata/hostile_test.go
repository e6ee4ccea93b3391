package kcdata

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"stackshot/internal/testheap"
)

// Small files that would make much of themselves.

// Deflate has its bound by itself, zstd has none.
func TestK10UnwrapBombs(t *testing.T) {
	body := make([]byte, 64<<20)
	var z bytes.Buffer
	w, err := zstd.NewWriter(&z)
	ok(t, err)
	_, err = w.Write(body)
	ok(t, err)
	ok(t, w.Close())
	plain, _, err := Unwrap(z.Bytes(), 1<<30)
	wantFormat(t, err, ErrTooLarge)
	if plain != nil {
		t.Errorf("%d bytes became %d", z.Len(), len(plain))
	}
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
