package kcdata

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"stackshot/internal/testheap"
)

// nest puts buffers into one of another kind, each behind an item of that kind's own.
func nest(t testing.TB, magic Type, inner ...[]byte) []byte {
	return buffer(t, magic, func(w ItemWriter) {
		for _, b := range inner {
			ok(t, w.Uint64Desc("before", 7))
			ok(t, w.Bytes(0x801, []byte("crash")))
			ok(t, w.Bytes(TypeNested, b))
		}
	})
}

func compressed(t testing.TB, plain []byte) []byte {
	var b bytes.Buffer
	ok(t, Compress(&b, plain, EnvelopeZlib))
	return b.Bytes()
}

func TestFindStackshot(t *testing.T) {
	shot, delta, crash := rich(t), buffer(t, MagicDeltaStackshot, func(ItemWriter) {}), nest(t, MagicCrashinfo)
	deep := shot
	for range MaxNested {
		deep = nest(t, MagicCrashinfo, deep)
	}
	for what, c := range map[string]struct {
		plain  []byte
		want   []byte // nil: there is none
		in     Type
		others int
	}{
		"itself":                   {shot, shot, TypeInvalid, 0},
		"a delta":                  {delta, delta, TypeInvalid, 0},
		"in a crash file":          {nest(t, MagicCrashinfo, shot), shot, MagicCrashinfo, 0},
		"a delta in a crash file":  {nest(t, MagicCrashinfo, delta), delta, MagicCrashinfo, 0},
		"behind another buffer":    {nest(t, MagicOSReason, crash, []byte("none"), nil, shot), shot, MagicOSReason, 0},
		"in a crash in a crash":    {nest(t, MagicCrashinfo, nest(t, MagicCrashinfo, crash, shot)), shot, MagicCrashinfo, 0},
		"three":                    {nest(t, MagicCrashinfo, delta, nest(t, MagicBTInfo, shot), compressed(t, shot)), delta, MagicCrashinfo, 2},
		"compressed":               {nest(t, MagicCrashinfo, compressed(t, shot)), shot, MagicCrashinfo, 0},
		"as deep as may be":        {deep, shot, MagicCrashinfo, 0},
		"deeper":                   {nest(t, MagicCrashinfo, nest(t, MagicCrashinfo, deep)), nil, 0, 0},
		"none":                     {nest(t, MagicCrashinfo, crash), nil, 0, 0},
		"none of a compressed one": {nest(t, MagicCrashinfo, compressed(t, crash)), nil, 0, 0},
	} {
		got, err := FindStackshot(c.plain, 1<<20)
		if c.want == nil {
			if wantFormat(t, err, ErrNotStackshot); got.Plain != nil || !strings.Contains(err.Error(), "CRASHINFO, and none is nested in it: not a stackshot") {
				t.Errorf("%s: %d bytes, %v", what, len(got.Plain), err)
			}
			continue
		}
		if ok(t, err); got.In != c.in || got.Others != c.others || !bytes.Equal(got.Plain[:len(c.want)], c.want) {
			t.Errorf("%s: %d bytes of %d, in %v at %#x, %d others", what, len(got.Plain), len(c.want), got.In, got.Offset, got.Others)
		}
		if !strings.Contains(what, "compressed") && !bytes.HasPrefix(c.plain[got.Offset:], c.want) {
			t.Errorf("%s: it does not begin at %#x", what, got.Offset)
		}
	}
}

// Text writes the stackshot where FindStackshot finds it.
func TestFindStackshotAgreesWithText(t *testing.T) {
	plain := nest(t, MagicCrashinfo, nest(t, MagicCrashinfo), nest(t, MagicOSReason, around()))
	var text strings.Builder
	ok(t, Text(&text, plain, math.MaxInt64))
	in, err := FindStackshot(plain, 0)
	if ok(t, err); !strings.Contains(text.String(), fmt.Sprintf("@%08x STACKSHOT", in.Offset)) {
		t.Errorf("at %#x:\n%s", in.Offset, text.String())
	}
}

// Of a crash file that was cut, at whatever byte, there is what it has of the stackshot, and the error.
func TestFindStackshotInACutFile(t *testing.T) {
	shot := rich(t)
	whole := nest(t, MagicCrashinfo, nest(t, MagicCrashinfo), shot)
	at := bytes.Index(whole, shot)
	for n := range whole {
		in, err := FindStackshot(whole[:n], 1<<20)
		if err == nil {
			t.Fatalf("cut to %d of %d bytes: no error", n, len(whole))
		}
		mustBeFormat(t, err)
		if n < at+headerSize {
			if in.Plain != nil {
				t.Fatalf("cut to %d bytes, before %d: %d bytes", n, at, len(in.Plain))
			}
			continue
		}
		if !bytes.HasPrefix(in.Plain, shot[:min(n-at, len(shot))]) || in.Offset != at || !errors.Is(err, ErrTruncated) {
			t.Fatalf("cut to %d bytes: %d bytes at %#x, want %d at %#x, %v", n, len(in.Plain), in.Offset, n-at, at, err)
		}
	}
}

// A file of many nested bombs unpacks one of them.
func TestK10NestedBombs(t *testing.T) {
	bomb := compressed(t, around(rawItem(0x7777, 4<<20-64, 0, make([]byte, 4<<20-64)...)))
	many := make([][]byte, 40)
	for i := range many {
		many[i] = bomb
	}
	plain := nest(t, MagicCrashinfo, many...)
	testheap.Bound(t, 64<<20, fmt.Sprintf("%d bytes", len(plain)), func() {
		in, err := FindStackshot(plain, 1<<30)
		if ok(t, err); in.Others != len(many)-1 || len(in.Plain) != 4<<20-16 {
			t.Errorf("%d bytes, %d others", len(in.Plain), in.Others)
		}
	})
}

// A delta says that it is one before all else, and how many of its threads have no stacks in it.
func TestDeltaSaysSo(t *testing.T) {
	plain := buffer(t, MagicDeltaStackshot, func(w ItemWriter) {
		for id := range uint64(3) {
			ok(t, w.BeginContainer(TypeTask, id%2))
			ok(t, w.Array(TypeThreadDeltaSnapshot, 48, int(id), make([]byte, 48*id)))
			ok(t, w.EndContainer(id%2))
		}
	})
	s, err := ParseSnapshot(plain)
	if ok(t, err); !s.Delta || len(s.Problems) != 2 || !strings.Contains(s.Problems[0], "a delta stackshot") || !strings.Contains(s.Problems[0], ": 3 threads that did not run") {
		t.Errorf("%v, %q", s.Delta, s.Problems)
	}
	if s, err := ParseSnapshot(around()); err != nil || s.Delta || s.Problems != nil {
		t.Errorf("a whole one: %v, %q", err, s.Problems)
	}
}
