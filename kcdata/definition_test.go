package kcdata

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// A definition written from the spec reads back as that spec.
func TestK9DefinitionRoundTrip(t *testing.T) {
	for id, s := range table {
		s, defined := s.definition()
		if !defined {
			continue
		}
		b := buffer(t, MagicStackshot, func(w ItemWriter) { ok(t, w.Define(id)) })
		r, err := NewReader(b)
		ok(t, err)
		for it, err := range r.Items() {
			ok(t, err)
			if want := uint64(padOf(len(it.Data))); it.Flags != want {
				t.Errorf("%s: flags %#x, want %#x", s.Name, it.Flags, want)
			}
		}
		got, known := r.Spec(id)
		if !known || !got.InFile || got.Name != cutName(s.Key) || !reflect.DeepEqual(got.Fields, s.Fields) {
			t.Errorf("%s: read back as %+v", s.Name, got)
		}
	}
}

type early struct {
	A uint32 `kc:"before"`
}

// defineAs is a definition of id with the fields of v.
func defineAs(id Type, key string, v any) []byte {
	s := structSpec(id, key, key, v)
	b := make([]byte, s.definitionSize())
	s.putDefinition(b)
	return rawItem(TypeDefinition, uint32(len(b)), 0, b...)
}

func TestK9DefinitionHoldsFromWhereItStands(t *testing.T) {
	one := rawItem(0x7777, 16, 0x88, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b := around(one, defineAs(0x7777, "pair", Timebase{}),
		rawItem(TypeContainerBegin, 16, 1, make([]byte, 16)...), one, rawItem(TypeContainerEnd, 0, 1),
		rawItem(TypeTimebase, 8, 0x80, 3, 0, 0, 0, 4, 0, 0, 0),
		defineAs(TypeTimebase, "other", early{}),
		rawItem(TypeTimebase, 8, 0x80, 3, 0, 0, 0, 4, 0, 0, 0))
	tree, err := Decode(b)
	ok(t, err)
	got, err := json.Marshal(tree)
	ok(t, err)
	want := `{"kcdata_stackshot":{` +
		`"0x7777":[1,0,0,0,2,0,0,0,0,0,0,0,0,0,0,0],` +
		`"typedef[pair]":{"name":"pair","typeID":30583,"numOfFields":2,"fields":["[0,4] uint32_t  numer;","[4,4] uint32_t  denom;"]},` +
		`"KCDATA_TYPE_INVALID":{"1":{"pair":{"numer":1,"denom":2}}},` +
		`"mach_timebase_info":{"numer":3,"denom":4},` +
		`"typedef[other]":{"name":"other","typeID":50,"numOfFields":1,"fields":["[0,4] uint32_t  before;"]},` +
		`"other":{"before":3}}}`
	if string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// A second walk starts without what the first one learnt.
func TestK9WalksAreIndependent(t *testing.T) {
	b := around(rawItem(0x7777, 8, 0x80, make([]byte, 8)...), defineAs(0x7777, "pair", Timebase{}))
	r, err := NewReader(b)
	ok(t, err)
	for range 2 {
		first := true
		for _, err := range r.Items() {
			ok(t, err)
			if _, known := r.Spec(0x7777); known == first {
				t.Errorf("known %v at the first item %v", known, first)
			}
			first = false
		}
	}
}

// Text and bytes of any length have one definition, and are read by it or without.
func TestOneDefinitionForAllLengths(t *testing.T) {
	for _, defined := range []bool{true, false} {
		b := buffer(t, MagicStackshot, func(w ItemWriter) {
			if defined {
				ok(t, w.Define(TypeLinuxWarning))
				ok(t, w.Define(TypeLinuxUserHow))
			}
			ok(t, w.String(TypeLinuxWarning, "a: b"))
			ok(t, w.String(TypeLinuxWarning, "cc: dd"))
			ok(t, w.Bytes(TypeLinuxUserHow, []byte{1, 0, 255}))
		})
		tree, err := Decode(b)
		ok(t, err)
		got, err := json.Marshal(tree)
		ok(t, err)
		if want := []byte(`"linux_warning":["a: b","cc: dd"],"linux_user_how":[[1,0,255]]`); !bytes.Contains(got, want) {
			t.Errorf("%s does not hold %s", got, want)
		}
	}
}

func TestK6OverlappingFieldsAreRefused(t *testing.T) {
	s := structSpec(0x7777, "overlap", "overlap", Timebase{})
	s.Fields[1].Offset = 3
	b := make([]byte, s.definitionSize())
	s.putDefinition(b)
	_, err := readAll(around(rawItem(TypeDefinition, uint32(len(b)), 0, b...)))
	wantFormat(t, err, ErrBadDefinition)
}
