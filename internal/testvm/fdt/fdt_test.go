package fdt

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

// random makes a tree; depth bounds it.
func random(rng *rand.Rand, depth int) *Node {
	n := &Node{Name: fmt.Sprintf("n%d", rng.IntN(1000))}
	for range rng.IntN(5) {
		v := make([]byte, rng.IntN(20))
		for i := range v {
			v[i] = byte(rng.IntN(256))
		}
		n.Set(fmt.Sprintf("p%d", rng.IntN(50)), v)
	}
	if depth > 0 {
		for range rng.IntN(4) {
			n.Children = append(n.Children, random(rng, depth-1))
		}
	}
	return n
}

func sameNode(a, b *Node) bool {
	if a.Name != b.Name || len(a.Props) != len(b.Props) || len(a.Children) != len(b.Children) {
		return false
	}
	for i := range a.Props {
		if a.Props[i].Name != b.Props[i].Name || !bytes.Equal(a.Props[i].Value, b.Props[i].Value) {
			return false
		}
	}
	for i := range a.Children {
		if !sameNode(a.Children[i], b.Children[i]) {
			return false
		}
	}
	return true
}

// A tree that is written is read as it was, reservations too.
func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 300 {
		want := &Tree{Root: random(rng, 4), BootCPU: uint32(i)}
		if i%2 == 0 {
			want.Reserved = append(Cells(0, 0x1000, 0, 0x2000), make([]byte, 16)...)
		} else {
			want.Reserved = make([]byte, 16)
		}
		got, err := Parse(want.Bytes())
		if err != nil {
			t.Fatalf("tree %d: %v", i, err)
		}
		if !sameNode(got.Root, want.Root) || got.BootCPU != want.BootCPU || !bytes.Equal(got.Reserved, want.Reserved) {
			t.Fatalf("tree %d is another one after writing and reading", i)
		}
	}
}

// The smallest tree with a property, counted by hand.
func TestBytesByHand(t *testing.T) {
	root := &Node{}
	root.Set("a", Cells(7))
	got := (&Tree{Root: root}).Bytes()
	want := bytes.Join([][]byte{
		// 40 bytes of header, 16 reserved, 8 words of structure, 2 of strings.
		Cells(0xd00dfeed, 90, 56, 88, 40, 17, 16, 0, 2, 32),
		make([]byte, 16),
		Cells(1, 0, 3, 4, 0, 7, 2, 9),
		[]byte("a\x00"),
	}, nil)
	if !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

// Whatever is cut or changed: an error or a tree, never both, never a crash.
func TestDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	whole := (&Tree{Root: random(rng, 3)}).Bytes()
	for n := range whole {
		if tree, err := Parse(whole[:n]); err == nil || tree != nil || !errors.Is(err, ErrMalformed) {
			t.Fatalf("cut at %d of %d: %v, %v", n, len(whole), tree, err)
		}
	}
	for range 20000 {
		bad := bytes.Clone(whole)
		for range 1 + rng.IntN(3) {
			bad[rng.IntN(len(bad))] = byte(rng.IntN(256))
		}
		if tree, err := Parse(bad); (tree == nil) != (err != nil) {
			t.Fatalf("%v and %v", tree, err)
		}
	}
}

func TestSetAndFind(t *testing.T) {
	n := &Node{Children: []*Node{{Name: "x"}}}
	n.Set("p", Cells(1))
	n.Set("p", Cells(2))
	if v, ok := n.Get("p"); !ok || !bytes.Equal(v, []byte{0, 0, 0, 2}) || len(n.Props) != 1 {
		t.Errorf("property %x, %v", v, n.Props)
	}
	if _, ok := n.Get("q"); ok || n.Child("x") == nil || n.Child("y") != nil {
		t.Error("found what is not there, or not what is")
	}
	n.Children[0].Set("phandle", Cells(41))
	if got := (&Tree{Root: n}).MaxPhandle(); got != 41 {
		t.Errorf("highest handle %d", got)
	}
	if !reflect.DeepEqual(String("ab"), []byte{'a', 'b', 0}) {
		t.Error("a string has no end")
	}
}
