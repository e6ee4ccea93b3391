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
			for how, encode := range map[string]func(b []byte){
				"field by field":         func(b []byte) { p.encodePacked(b, v.Elem()) },
				"as a pointer has it":    func(b []byte) { p.encode(b, v.Elem()) },
				"as an interface has it": func(b []byte) { p.encode(b, reflect.ValueOf(v.Elem().Interface())) },
			} {
				got := make([]byte, p.size)
				if encode(got); !bytes.Equal(got, want) {
					t.Errorf("%s, %s: bytes differ from the standard library's", rt, how)
				}
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
