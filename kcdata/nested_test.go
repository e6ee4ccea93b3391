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

func compressed(t testing.TB, plain []byte) []byte { return envelope(t, plain, EnvelopeZlib) }

func envelope(t testing.TB, plain []byte, e Envelope) []byte {
	var b bytes.Buffer
	ok(t, Compress(&b, plain, e))
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
		"behind another buffer":    {nest(t, MagicOSReason, crash, nil, shot), shot, MagicOSReason, 0},
		"in a crash in a crash":    {nest(t, MagicCrashinfo, nest(t, MagicCrashinfo, crash, shot)), shot, MagicCrashinfo, 0},
		"three":                    {nest(t, MagicCrashinfo, delta, nest(t, MagicBTInfo, shot), compressed(t, shot)), delta, MagicCrashinfo, 2},
		"compressed":               {nest(t, MagicCrashinfo, compressed(t, shot)), shot, MagicCrashinfo, 0},
		"compressed by zstd":       {nest(t, MagicCrashinfo, envelope(t, shot, EnvelopeZstd)), shot, MagicCrashinfo, 0},
		"as deep as may be":        {deep, shot, MagicCrashinfo, 0},
		"a crash file behind it":   {nest(t, MagicCrashinfo, shot, crash), shot, MagicCrashinfo, 0},
		"none":                     {nest(t, MagicCrashinfo, crash), nil, 0, 0},
		"none of a compressed one": {nest(t, MagicCrashinfo, compressed(t, crash)), nil, 0, 0},
	} {
		got, err := FindStackshot(c.plain, int64(len(c.plain)), 1<<22)
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

// What is nested and cannot be read is named, with its offset, whether a stackshot is found before it, behind it or
// not at all.
func TestNestedFaults(t *testing.T) {
	shot := rich(t)
	damaged := func(e Envelope) []byte {
		b := envelope(t, shot, e)
		b[len(b)-1-headerSize*int(EnvelopeZstd-e)] ^= 1 // of its checksum
		return b
	}
	deep := shot
	for range MaxNested {
		deep = nest(t, MagicCrashinfo, deep)
	}
	unknown := envelopeOf(t, 9, shot, uint64(len(shot)), uint64(len(shot)))
	for what, c := range map[string]struct {
		inner []byte
		of    error
		has   int // bytes of a stackshot
	}{
		"a wrong checksum":          {damaged(EnvelopeZlib), ErrBadStream, len(shot) - headerSize},
		"a wrong checksum of zstd":  {damaged(EnvelopeZstd), ErrBadStream, 0},
		"an unknown compression":    {unknown, ErrCompression, 0},
		"of one in an envelope":     {compressed(t, nest(t, MagicOSReason, unknown)), ErrCompression, 0},
		"a begin marker alone":      {shot[:headerSize], ErrTruncated, 0},
		"no KCData":                 {[]byte("\x1f\x8b\x08gzip"), ErrBadMagic, 0},
		"three bytes":               {[]byte("abc"), ErrBadMagic, 0},
		"nothing in an envelope":    {[]byte("\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00"), ErrTruncated, 0},
		"bytes behind its end":      {append(bytes.Clone(shot), "hello"...), ErrBadSize, len(shot)},
		"less than that":            {shot[:10], ErrTruncated, 0},
		"a crash file that was cut": {nest(t, MagicCrashinfo, shot)[:100], ErrTruncated, 0},
		"too many in one another":   {deep, ErrTooDeep, 0},
		"more than may be unpacked": {compressed(t, around(rawItem(0x7777, 5<<20, 0, make([]byte, 5<<20)...))), ErrTooLarge, 0},
	} {
		alone := nest(t, MagicCrashinfo, c.inner)
		in, err := FindStackshot(alone, int64(len(alone)), 1<<22)
		wantFormat(t, err, c.of)
		if bad, ok := errors.AsType[*FormatError](err); !ok || len(in.Plain) < c.has || bad.Offset < bytes.Index(alone, c.inner) && !strings.Contains(err.Error(), "of what is unpacked from offset") {
			t.Errorf("%s: %d bytes of a stackshot, %v", what, len(in.Plain), err)
		}
		first := nest(t, MagicCrashinfo, c.inner, shot)
		in, err = FindStackshot(first, int64(len(first)), 1<<22)
		if wantFormat(t, err, c.of); in.Plain == nil || (c.has > 0 || c.of == ErrTooLarge) != (in.Others > 0) {
			t.Errorf("%s, and a stackshot: %d bytes, %d others, %v", what, len(in.Plain), in.Others, err)
		}
	}
	for what, inner := range map[string][][]byte{
		"two": {shot, shot}, "one that is cut": {shot, shot[:10]}, "an envelope": {shot, unknown},
		"behind its end": {append(bytes.Clone(shot), around()...)}, "behind the end of one in an envelope": {append(compressed(t, shot), shot...)},
	} {
		file := nest(t, MagicCrashinfo, inner...)
		in, err := FindStackshot(file, int64(len(file)), 1<<30)
		if ok(t, err); in.Others != 1 || !bytes.HasPrefix(in.Plain, shot) {
			t.Errorf("%s: %d bytes, %d others", what, len(in.Plain), in.Others)
		}
	}
}

// What is nested unpacks to no more than the file may, the file itself and each envelope counted.
func TestK10NestedBudget(t *testing.T) {
	shot, tiny := rich(t), compressed(t, nest(t, MagicOSReason))
	large := compressed(t, around(rawItem(0x7777, 5<<20, 0, make([]byte, 5<<20)...)))
	for what, c := range map[string]struct {
		inner [][]byte
		limit int64
		wrong bool
	}{
		"a large one":               {[][]byte{large, shot}, 1 << 30, true},
		"a small one":               {[][]byte{tiny, shot}, 1 << 30, false},
		"a small one, little limit": {[][]byte{tiny, shot}, unwrapCost, true},
		"many small ones":           {[][]byte{tiny, tiny, tiny, tiny, tiny, shot}, 1 << 30, true},
		"the file is counted too":   {[][]byte{tiny, shot}, unwrapCost + 1000, true},
	} {
		in, err := FindStackshot(nest(t, MagicCrashinfo, c.inner...), 0, c.limit)
		if errors.Is(err, ErrTooLarge) != c.wrong || err == nil == c.wrong || in.Plain == nil {
			t.Errorf("%s: %d bytes, %v", what, len(in.Plain), err)
		}
	}
	deep := shot
	for range MaxNested - 1 {
		deep = nest(t, MagicCrashinfo, deep)
	}
	leaf := nest(t, MagicCrashinfo)
	for range MaxNested - 1 {
		leaf = nest(t, MagicCrashinfo, leaf)
	}
	_, err := FindStackshot(nest(t, MagicCrashinfo, deep, leaf), 0, 1<<20)
	ok(t, err)
}

// A small file with endless many ways through its nested envelopes unpacks no more than another of its size.
func TestK10WaysThroughNestedEnvelopes(t *testing.T) {
	b := compressed(t, nest(t, MagicOSReason))
	for range 3 {
		many := make([][]byte, 60)
		for i := range many {
			many[i] = b
		}
		b = compressed(t, nest(t, MagicCrashinfo, many...))
	}
	file := nest(t, MagicCrashinfo, b)
	_, err := FindStackshot(file, int64(len(file)), 1<<30)
	wantFormat(t, err, ErrTooLarge)
}

// Text writes the stackshot where FindStackshot finds it.
func TestFindStackshotAgreesWithText(t *testing.T) {
	plain := nest(t, MagicCrashinfo, nest(t, MagicCrashinfo), nest(t, MagicOSReason, around()))
	var text strings.Builder
	ok(t, Text(&text, plain, math.MaxInt64))
	in, err := FindStackshot(plain, 0, 0)
	if ok(t, err); !strings.Contains(text.String(), fmt.Sprintf("@%08x STACKSHOT", in.Offset)) {
		t.Errorf("at %#x:\n%s", in.Offset, text.String())
	}
}

// Of a crash file that was cut, at whatever byte, there is what it has of the stackshot, and the error.
func TestFindStackshotInACutFile(t *testing.T) {
	shot := rich(t)
	whole := nest(t, MagicCrashinfo, nest(t, MagicCrashinfo), shot, shot)
	at, second := bytes.Index(whole, shot), bytes.LastIndex(whole, shot)
	for n := range whole {
		in, err := FindStackshot(whole[:n], int64(n), 1<<20)
		if err == nil {
			t.Fatalf("cut to %d of %d bytes: no error", n, len(whole))
		}
		wantFormat(t, err, ErrTruncated)
		if n <= at+headerSize {
			if in.Plain != nil {
				t.Fatalf("cut to %d bytes, before %d: %d bytes", n, at, len(in.Plain))
			}
			continue
		}
		if n < second && in.Others > 0 || n >= second+4 && in.Others != 1 {
			t.Fatalf("cut to %d bytes, the second begins at %d: %d others", n, second, in.Others)
		}
		if !bytes.HasPrefix(in.Plain, shot[:min(n-at, len(shot))]) || in.Offset != at {
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
		in, err := FindStackshot(plain, int64(len(plain)), 1<<30)
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
			ok(t, w.Array(TypeThreadDeltaSnapshot, 48, int(2*id), make([]byte, 48*2*id)))
			ok(t, w.EndContainer(id%2))
		}
	})
	s, err := ParseSnapshot(plain)
	if ok(t, err); !s.Delta || len(s.Problems) != 2 || !strings.Contains(s.Problems[0], "a delta stackshot") || !strings.Contains(s.Problems[0], "threads that did not run since the one before it (6), and") {
		t.Errorf("%v, %q", s.Delta, s.Problems)
	}
	if s, err := ParseSnapshot(buffer(t, MagicDeltaStackshot, func(ItemWriter) {})); err != nil || len(s.Problems) != 1 || strings.Contains(s.Problems[0], "(") {
		t.Errorf("an empty one: %v, %q", err, s.Problems)
	}
	if s, err := ParseSnapshot(around()); err != nil || s.Delta || s.Problems != nil {
		t.Errorf("a whole one: %v, %q", err, s.Problems)
	}
}

// A stackshot of Apple's is of another kernel, and its time is known; one record of Linux's makes it ours.
func TestOtherKernel(t *testing.T) {
	for _, c := range []struct {
		item  func(ItemWriter) error
		other bool
	}{
		{func(w ItemWriter) error { return w.Struct(TypeThreadSnapshot, ThreadSnapshot{State: THWait}) }, true},
		{func(w ItemWriter) error { return w.Struct(TypeLinuxThread, LinuxThread{}) }, false},
	} {
		s, err := ParseSnapshot(buffer(t, MagicStackshot, func(w ItemWriter) {
			ok(t, errors.Join(w.Bytes(TypeUsecsSinceEpoch, []byte{1, 2, 0, 0, 0, 0, 0, 0}), w.BeginContainer(TypeTask, 1), w.BeginContainer(TypeThread, 2),
				c.item(w), w.EndContainer(2), w.EndContainer(1)))
		}))
		if ok(t, err); s.OtherKernel() != c.other || s.Partial || s.Machine.RealtimeNs != 513_000 {
			t.Errorf("of another kernel %v, breaks off %v, at %d", s.OtherKernel(), s.Partial, s.Machine.RealtimeNs)
		}
	}
	s, err := ParseSnapshot(buffer(t, MagicStackshot, func(w ItemWriter) {
		late := []byte{1, 2, 0, 0, 0, 0, 0, 0}
		ok(t, errors.Join(w.Bytes(TypeUsecsSinceEpoch, late[:4]), w.Struct(TypeLinuxMachine, LinuxMachine{RealtimeNs: 7}), w.Bytes(TypeUsecsSinceEpoch, late)))
	}))
	if ok(t, err); s.Machine.RealtimeNs != 7 {
		t.Errorf("at %d", s.Machine.RealtimeNs)
	}
	if s, err := ParseSnapshot(around()); err != nil || s.OtherKernel() {
		t.Errorf("without a task: %v", err)
	}
}
