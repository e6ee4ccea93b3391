package kcdata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
)

// structs are all exported structs, L and Apple's.
func structs() []any {
	out := []any{
		TaskSnapshot{}, TransitioningTaskSnapshot{}, ThreadSnapshot{}, CPUTimes{}, Duration{}, Timebase{},
		ThreadWaitinfo{}, LatencyCollection{}, LatencyCPU{}, LatencyTask{}, LatencyThread{},
	}
	for _, v := range linuxStructs {
		out = append(out, v)
	}
	return out
}

// Field by field, as a block of memory, and by the standard library: the same
// bytes, and back to the same value.
func TestCodecAgainstTheStandardLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	flat := 0
	for _, proto := range structs() {
		rt := reflect.TypeOf(proto)
		p, err := planOf(rt)
		ok(t, err)
		if p.flat {
			flat++
		}
		for range 20 {
			want := randomBytes(rng, p.size)
			v := reflect.New(rt)
			if _, err := binary.Decode(want, binary.LittleEndian, v.Interface()); err != nil {
				t.Fatal(err)
			}
			fields := make([]byte, p.size)
			p.encodePacked(fields, v.Elem())
			if got := Marshal([]byte{9}, v.Interface()); !bytes.Equal(got[1:], want) || !bytes.Equal(fields, want) {
				t.Errorf("%s: bytes differ from the standard library's", rt)
			}
			if !bytes.Equal(Marshal(nil, v.Elem().Interface()), want) {
				t.Errorf("%s: a value marshals to other bytes than a pointer", rt)
			}
			back, byField := reflect.New(rt), reflect.New(rt)
			ok(t, Unmarshal(want, back.Interface()))
			p.decodePacked(want, byField.Elem())
			if back.Elem().Interface() != v.Elem().Interface() || byField.Elem().Interface() != v.Elem().Interface() {
				t.Errorf("%s: comes back as another value", rt)
			}
		}
	}
	if littleEndian && flat < len(linuxStructs) {
		t.Errorf("%d structs are copied as memory, all %d L structs should be", flat, len(linuxStructs))
	}
}

// On dirty structs, for every length: what is not in the payload is zero.
func TestK7UnmarshalClearsWhatIsNotThere(t *testing.T) {
	dirty := LinuxSignals{1, 2, 3}
	ok(t, Unmarshal([]byte{7, 0, 0, 0, 0, 0, 0, 0, 1, 2}, &dirty))
	if want := (LinuxSignals{Pending: 7}); dirty != want {
		t.Errorf("%+v, want %+v", dirty, want)
	}
}

func TestUnmarshalRefusesWhatItCannotFill(t *testing.T) {
	var s string
	for _, v := range []any{nil, Timebase{}, (*Timebase)(nil), &s, 5} {
		if err := Unmarshal(make([]byte, 64), v); !errors.Is(err, ErrNotFixed) {
			t.Errorf("%T: %v", v, err)
		}
	}
	if n := SizeOf(s); n != 0 {
		t.Errorf("a string has size %d", n)
	}
}
