// Package testread reads KCData by the rules of Apple's kcdata.py, re-stated: what
// that decoder would make of a file, and where it would misread it. For tests.
//
// The rules that matter to a writer: a definition holds for all items of its id, those
// before it too, and the last one wins; a record is read by its definition, whatever
// the size of the item, and fields that do not fit are left out; an array is of equal
// elements, each read so; of two items of one name in one container the first stays,
// unless both are arrays: these are joined; of two containers of one type and id the
// last stays; an id that is neither built in nor defined is a list of bytes.
package testread

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Node is a buffer or a container.
type Node struct {
	Items map[string]any // map[string]any of a record, []any of an array, []byte of one of one-byte records, string, uint64, int64
	In    map[string]map[uint64]*Node

	arrays map[string]uint32 // types of the arrays in Items
}

func newNode() *Node {
	return &Node{Items: map[string]any{}, In: map[string]map[uint64]*Node{}, arrays: map[string]uint32{}}
}

// maxFaults is how many faults Decode names.
const maxFaults = 20

type decoder struct {
	types  map[uint32]*record
	open   []*Node
	faults []string
	at     int
}

func (d *decoder) fault(format string, args ...any) {
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, fmt.Sprintf("at %#x: ", d.at)+fmt.Sprintf(format, args...))
	}
}

type item struct {
	typ, size uint32
	flags     uint64
	data      []byte // with padding
	off       int
}

const (
	definition     = 0x12
	containerBegin = 0x13
	containerEnd   = 0x14
	arrayPad0      = 0x20
	bufferEnd      = 0xf19158ed
)

// Decode reads a plain buffer. Faults are what the decoder would lose, misread or not
// know; err: it would give up.
func Decode(plain []byte) (root *Node, faults []string, err error) {
	items, err := split(plain)
	if err != nil {
		return nil, nil, err
	}
	d := &decoder{types: known(), open: []*Node{newNode()}}
	root = d.open[0]
	for _, it := range items {
		d.at = it.off
		if it.typ == definition {
			d.define(it)
		}
	}
	defined := map[uint32]bool{}
	ids := []uint64{}
	for _, it := range items {
		d.at = it.off
		d.padding(it)
		switch it.typ {
		case definition:
			defined[binary.LittleEndian.Uint32(it.data)] = true
		case containerBegin:
			ids = append(ids, it.flags)
			d.begin(binary.LittleEndian.Uint32(it.data), it.flags)
		case containerEnd:
			if len(ids) == 0 || ids[len(ids)-1] != it.flags {
				return nil, nil, fmt.Errorf("at %#x: end of container %d", it.off, it.flags)
			}
			ids, d.open = ids[:len(ids)-1], d.open[:len(d.open)-1]
		default:
			d.item(it, defined)
		}
	}
	return root, d.faults, nil
}

func split(b []byte) (items []item, err error) {
	for off := 0; ; {
		if len(b)-off < 16 {
			return nil, fmt.Errorf("at %#x: no end marker", off)
		}
		it := item{typ: binary.LittleEndian.Uint32(b[off:]), size: binary.LittleEndian.Uint32(b[off+4:]), flags: binary.LittleEndian.Uint64(b[off+8:]), off: off}
		if it.typ == bufferEnd {
			return items[1:], nil // without the begin marker
		}
		if uint64(it.size) > uint64(len(b)-off-16) {
			return nil, fmt.Errorf("at %#x: %d bytes of %d", off, it.size, len(b)-off-16)
		}
		it.data = b[off+16:][:it.size]
		items = append(items, it)
		off += 16 + int(it.size)
	}
}

// define takes a definition; another one of the same id changes what was before it.
func (d *decoder) define(it item) {
	b := it.data
	id, n := binary.LittleEndian.Uint32(b), int(binary.LittleEndian.Uint32(b[4:]))
	r := &record{name: cut(b[8:40]), inFile: b}
	for i := range n {
		f := b[40+40*i:]
		x := field{name: cut(f[8:40]), elem: f[1], offset: int(binary.LittleEndian.Uint16(f[2:])), size: int(binary.LittleEndian.Uint32(f[4:])), count: -1}
		if f[0]&1 != 0 {
			x.count, x.size = x.size>>16, x.size&0xffff
		} else if x.elem == 1 {
			d.fault("%s.%s: a single char would make the output no JSON", r.name, x.name)
		}
		r.fields = append(r.fields, x)
	}
	switch old := d.types[id]; {
	case old != nil && old.apple:
		d.fault("%s: %#x is built in", r.name, id)
	case old != nil && bytes.Equal(old.inFile, b):
		d.fault("%s is defined twice", r.name)
	case old != nil:
		d.fault("%s is defined twice and otherwise: items before this are misread", r.name)
	}
	d.types[id] = r
}

// padding holds an item against "whoever writes padding writes zeroes": what else stands there was
// left in a buffer by another thread, perhaps another program's.
func (d *decoder) padding(it item) {
	pad := int(it.flags & 15)
	switch {
	case it.typ == containerBegin:
		pad = len(it.data) - 4
	case it.typ == containerEnd:
		pad = len(it.data)
	case it.typ >= arrayPad0 && it.typ <= arrayPad0+15:
		pad = int(it.typ & 15)
	}
	d.zero("padding", it.data[len(it.data)-pad:])
}

func (d *decoder) zero(what string, b []byte) {
	if stray := bytes.Trim(b, "\x00"); len(stray) > 0 {
		d.fault("%s is not zero: %x", what, stray)
	}
}

func (d *decoder) begin(typ uint32, id uint64) {
	in := d.open[len(d.open)-1].In
	r := d.types[typ]
	if r == nil {
		d.fault("container of type %#x, of which nothing is known", typ)
		r = &record{name: fmt.Sprintf("%#x", typ)}
	}
	if in[r.name] == nil {
		in[r.name] = map[uint64]*Node{}
	}
	if in[r.name][id] != nil {
		d.fault("%s %d is there twice: the first is lost", r.name, id)
	}
	n := newNode()
	in[r.name][id] = n
	d.open = append(d.open, n)
}

func (d *decoder) item(it item, defined map[uint32]bool) {
	top := d.open[len(d.open)-1]
	if it.typ == 2 || it.typ == 3 { // named numbers
		v := binary.LittleEndian.Uint64(append(it.data[32:len(it.data):len(it.data)], make([]byte, 8)...))
		if it.typ == 2 {
			v = uint64(uint32(v))
		}
		d.add(top, cut(it.data[:32]), v)
		return
	}
	isArray := it.typ >= arrayPad0 && it.typ <= arrayPad0+15
	typ, pad := it.typ, int(it.flags&15)
	if isArray {
		typ, pad = uint32(it.flags>>32), int(it.typ&15)
	}
	r := d.types[typ]
	if r == nil || !r.apple && !defined[typ] {
		d.fault("%#x has no definition before it", typ)
		return
	}
	data := it.data[:len(it.data)-pad]
	if !isArray {
		d.add(top, r.name, d.value(r, data))
		return
	}
	count := int(uint32(it.flags))
	if len(data) == count && r.end() == 1 {
		d.joinBytes(top, r, typ, data)
		return
	}
	list := make([]any, 0, count)
	for i := range count {
		size := len(data) / count
		list = append(list, d.value(r, data[i*size:][:size]))
	}
	d.join(top, r.name, typ, list)
}

func (d *decoder) add(n *Node, name string, v any) {
	if _, has := n.Items[name]; has {
		d.fault("a second %s in its container is lost", name)
		return
	}
	n.Items[name] = v
}

func (d *decoder) join(n *Node, name string, typ uint32, list []any) {
	have, _ := n.Items[name].([]any)
	if d.mixed(n, name, typ) {
		return
	}
	n.Items[name], n.arrays[name] = append(have, list...), typ
}

// joinBytes is join for an array of one-byte records.
func (d *decoder) joinBytes(n *Node, r *record, typ uint32, b []byte) {
	have, _ := n.Items[r.name].([]byte)
	if d.mixed(n, r.name, typ) {
		return
	}
	if isText := r.fields[0].elem == 1; isText && (len(b) == 0 || b[len(b)-1] != 0) {
		d.fault("%s: what is joined to this text has no NUL before it", r.name)
	}
	n.Items[r.name], n.arrays[r.name] = append(have, b...), typ
}

func (d *decoder) mixed(n *Node, name string, typ uint32) bool {
	first, isArray := n.arrays[name]
	mixed := n.Items[name] != nil && (!isArray || first != typ)
	if mixed {
		d.fault("an array of %s in its container is lost or mixed", name)
	}
	return mixed
}

// value is data read as r.
func (d *decoder) value(r *record, b []byte) any {
	switch {
	case r.text > 0:
		if len(cut(b)) > r.text && r.name != "boot_args" {
			d.fault("%s of %d bytes is cut to %d", r.name, len(cut(b)), r.text)
		}
		d.zero(r.name+" behind its NUL", b[len(cut(b)):])
		return cut(b[:min(len(b), r.text)])
	case r.number > 0:
		if len(b) != r.number {
			d.fault("%s of %d bytes is read as %d", r.name, len(b), r.number)
		}
		return number(field{elem: 9, size: r.number}, b)
	case len(r.fields) == 0:
		return nil
	}
	if len(b) != r.end() && !r.apple {
		d.fault("%s of %d bytes is read as %d", r.name, len(b), r.end())
	}
	out := map[string]any{}
	for _, f := range r.fields {
		if f.end() > len(b) {
			continue
		}
		v := b[f.offset:f.end()]
		out[f.name] = f.value(v)
		switch {
		case f.name == "reserved":
			d.zero(r.name+"."+f.name, v)
		case f.count >= 0 && f.elem == 1:
			d.zero(r.name+"."+f.name+" behind its NUL", v[len(cut(v)):])
		}
	}
	return out
}

func (f field) value(b []byte) any {
	switch {
	case f.count < 0:
		return number(f, b)
	case f.elem == 1:
		return cut(b)
	}
	var out []any
	for ; len(b) >= f.size; b = b[f.size:] {
		out = append(out, number(f, b))
	}
	return out
}

func number(f field, b []byte) any {
	var w [8]byte
	copy(w[:], b[:min(len(b), f.size)])
	v := binary.LittleEndian.Uint64(w[:])
	if f.elem%2 == 0 { // signed
		shift := 64 - 8*f.size
		return int64(v<<shift) >> shift
	}
	return v
}

// parseField reads "name:-4*2", see packed.
func parseField(s string) field {
	name, rest, _ := strings.Cut(s, ":")
	f := field{name: name, elem: 9, size: 8, count: -1}
	if rest == "" {
		return f
	}
	size, count, isArray := strings.Cut(strings.TrimPrefix(rest, "-"), "*")
	f.size, _ = strconv.Atoi(size)
	f.elem = map[int]uint8{1: 3, 2: 5, 4: 7, 8: 9}[f.size]
	if isArray {
		f.count, _ = strconv.Atoi(count)
	}
	if strings.HasPrefix(rest, "-") {
		f.elem--
	}
	if isArray && f.size == 1 {
		f.elem = 1
	}
	return f
}

func cut(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
