// Package fdt reads, changes and writes flattened device trees (Devicetree
// Specification 0.4, chapter 5): what a layout needs to give an emulated machine
// CPUs that differ. All integers are big-endian.
package fdt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Tree is a device tree. Reserved is the memory reservation block as it is in
// the file, its terminator included.
type Tree struct {
	Root     *Node
	Reserved []byte
	BootCPU  uint32
}

// Node is one device, with its properties in order.
type Node struct {
	Name     string
	Props    []Prop
	Children []*Node
}

// Prop is one property; what its bytes mean is the binding's business.
type Prop struct {
	Name  string
	Value []byte
}

const (
	magic      = 0xd00dfeed
	headerLen  = 40
	version    = 17
	compatible = 16 // the oldest version a reader of ours must know

	tokBegin = 1
	tokEnd   = 2
	tokProp  = 3
	tokNop   = 4
	tokDone  = 9
)

// ErrMalformed is a file that is no device tree of version 17.
var ErrMalformed = errors.New("fdt: malformed device tree")

// Cells is the value of 32-bit numbers.
func Cells(v ...uint32) []byte {
	var b []byte
	for _, n := range v {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}

// String is the value of a text.
func String(s string) []byte { return append([]byte(s), 0) }

// Child finds a node below n by its whole name, nil if there is none.
func (n *Node) Child(name string) *Node {
	for _, c := range n.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Get returns a property's value and whether it is there.
func (n *Node) Get(name string) ([]byte, bool) {
	for _, p := range n.Props {
		if p.Name == name {
			return p.Value, true
		}
	}
	return nil, false
}

// Set changes a property or adds it.
func (n *Node) Set(name string, value []byte) {
	for i := range n.Props {
		if n.Props[i].Name == name {
			n.Props[i].Value = value
			return
		}
	}
	n.Props = append(n.Props, Prop{name, value})
}

// MaxPhandle is the highest handle by which a node of the tree can be named.
func (t *Tree) MaxPhandle() uint32 {
	var highest uint32
	var walk func(*Node)
	walk = func(n *Node) {
		if v, _ := n.Get("phandle"); len(v) == 4 {
			highest = max(highest, binary.BigEndian.Uint32(v))
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(t.Root)
	return highest
}

// Bytes is the tree as a file.
func (t *Tree) Bytes() []byte {
	w := writer{at: map[string]uint32{}}
	w.node(t.Root)
	w.structure = append(w.structure, Cells(tokDone)...)
	reserved := t.Reserved
	if reserved == nil {
		reserved = make([]byte, 16)
	}
	structureAt := headerLen + len(reserved)
	stringsAt := structureAt + len(w.structure)
	total := stringsAt + len(w.strings)
	head := Cells(magic, uint32(total), uint32(structureAt), uint32(stringsAt), headerLen, version, compatible,
		t.BootCPU, uint32(len(w.strings)), uint32(len(w.structure)))
	return bytes.Join([][]byte{head, reserved, w.structure, w.strings}, nil)
}

type writer struct {
	structure, strings []byte
	at                 map[string]uint32 // where a property's name is in strings
}

func (w *writer) node(n *Node) {
	w.structure = append(w.structure, Cells(tokBegin)...)
	w.padded(String(n.Name))
	for _, p := range n.Props {
		at, ok := w.at[p.Name]
		if !ok {
			at = uint32(len(w.strings))
			w.at[p.Name] = at
			w.strings = append(w.strings, String(p.Name)...)
		}
		w.structure = append(w.structure, Cells(tokProp, uint32(len(p.Value)), at)...)
		w.padded(p.Value)
	}
	for _, c := range n.Children {
		w.node(c)
	}
	w.structure = append(w.structure, Cells(tokEnd)...)
}

func (w *writer) padded(b []byte) {
	w.structure = append(append(w.structure, b...), make([]byte, -len(b)&3)...)
}

// block takes n bytes at off of a file.
func block(b []byte, off, n uint32) ([]byte, error) {
	if uint64(off)+uint64(n) > uint64(len(b)) {
		return nil, fmt.Errorf("%w: %d bytes at %d of %d", ErrMalformed, n, off, len(b))
	}
	return b[off : off+n : off+n], nil
}
