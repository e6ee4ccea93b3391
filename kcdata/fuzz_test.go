package kcdata

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	"stackshot/internal/testheap"
)

// seeds are small buffers in every form; fuzzing grows from them.
func seeds(f *testing.F) {
	plain := rich(f)
	f.Add(plain)
	f.Add(around())
	f.Add(around(rawItem(TypeArray, 32, uint64(TypeKernStackFrame64)<<32|2, make([]byte, 32)...)))
	f.Add(around(defineAs(0x7777, "pair", Timebase{}), rawItem(0x7777, 8, 0x80, make([]byte, 8)...)))
	for e := EnvelopeZlib; e <= EnvelopeZstd; e++ {
		var b bytes.Buffer
		ok(f, Compress(&b, plain, e))
		f.Add(b.Bytes())
	}
	f.Add(codedBy(f, plain, "gzip"))
	f.Add(codedBy(f, plain, "gzip", "base64"))
}

func mustBeFormat(t *testing.T, err error) {
	t.Helper()
	var fe *FormatError
	if err != nil && !errors.As(err, &fe) {
		t.Fatalf("%T is not a *FormatError: %v", err, err)
	}
}

// FuzzReader: no bytes make the walk or the tree panic, and what is read lies
// where it says.
func FuzzReader(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		items, err := readAll(b)
		mustBeFormat(t, err)
		for _, it := range items {
			if it.Depth > MaxDepth || it.Offset+headerSize+len(it.raw) > len(b) || len(it.Data) > len(it.raw) {
				t.Fatalf("item %+v of %d bytes", it, len(b))
			}
			if _, size, count := it.Elem(); size*count != len(it.Data) && it.Type == TypeArray {
				t.Fatalf("array %+v", it)
			}
			it.Desc()
		}
		tree, derr := Decode(b)
		mustBeFormat(t, derr)
		if derr == nil {
			if _, err := json.Marshal(tree); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzText: the text of every sound buffer is that buffer.
func FuzzText(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := Check(b)
		if err != nil {
			mustBeFormat(t, err)
			mustBeFormat(t, Text(io.Discard, b, math.MaxInt64))
			return
		}
		if n <= 1<<16 {
			textRoundTrip(t, b)
		}
	})
}

// FuzzUnwrap: no bytes unwrap to more than the limit.
func FuzzUnwrap(f *testing.F) {
	seeds(f)
	body := make([]byte, 1<<20)
	z := deflated(f, body)
	f.Add(envelopeOf(f, algorithmZlib, z, uint64(len(z)), uint64(len(body))))
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 16
		var plain []byte
		var env Envelope
		var err error
		testheap.Bound(t, 32<<20, fmt.Sprintf("a file of %d bytes", len(b)), func() { plain, env, err = Unwrap(b, limit) })
		mustBeFormat(t, err)
		if err == nil && plain == nil || plain != nil && len(plain) == 0 {
			t.Fatalf("%v and %d bytes", err, len(plain))
		}
		if len(plain) > limit {
			t.Fatalf("%v: %d bytes, limit %d", env, len(plain), limit)
		}
		if _, err := Check(plain); err == nil {
			var again bytes.Buffer
			ok(t, Compress(&again, plain, EnvelopeZstd))
		}
	})
}
