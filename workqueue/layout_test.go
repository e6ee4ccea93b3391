package workqueue

import (
	"math"
	"testing"
	"unsafe"
)

// The drawing in doc.go, by hand.
func TestInvariant1Layout(t *testing.T) {
	var f fixed
	var it Item
	for _, c := range []struct {
		field     string
		got, want uintptr
	}{
		{"magic", unsafe.Offsetof(f.header) + unsafe.Offsetof(f.header.magic), 0},
		{"version", unsafe.Offsetof(f.header.version), 4},
		{"capacity", unsafe.Offsetof(f.header.capacity), 8},
		{"queues", unsafe.Offsetof(f.header.queues), 12},
		{"pushed", unsafe.Offsetof(f.producer) + unsafe.Offsetof(f.producer.pushed), 128},
		{"refused", unsafe.Offsetof(f.producer) + unsafe.Offsetof(f.producer.refused), 132},
		{"populated", unsafe.Offsetof(f.finish) + unsafe.Offsetof(f.finish.populated), 256},
		{"easy tail", unsafe.Offsetof(f.lanes) + unsafe.Offsetof(f.lanes[0].tail), 384},
		{"easy head", unsafe.Offsetof(f.lanes) + unsafe.Offsetof(f.lanes[0].head), 512},
		{"hard tail", unsafe.Offsetof(f.lanes) + unsafe.Sizeof(f.lanes[0]), 640},
		{"hard head", unsafe.Offsetof(f.lanes) + unsafe.Sizeof(f.lanes[0]) + unsafe.Offsetof(f.lanes[1].head), 768},
		{"slots", unsafe.Offsetof(f.slots), 896},
		{"slot.waited", unsafe.Offsetof(f.slots[0].waited), 0},
		{"slot.waits", unsafe.Offsetof(f.slots[0].waits), 8},
		{"slot.taken", unsafe.Offsetof(f.slots[0].taken), 16},
		{"sizeof slot", unsafe.Sizeof(f.slots[0]), 64},
		{"items", unsafe.Sizeof(f), 66432},
		{"item.index", unsafe.Offsetof(it.Index), 0},
		{"item.tgid", unsafe.Offsetof(it.Tgid), 4},
		{"item.first_tid", unsafe.Offsetof(it.FirstTid), 8},
		{"item.count", unsafe.Offsetof(it.Count), 12},
		{"sizeof item", unsafe.Sizeof(it), 16},
		{"Size(10)", uintptr(Size(10)), 66432 + 10*24},
	} {
		if c.got != c.want {
			t.Errorf("%s at %d, want %d", c.field, c.got, c.want)
		}
	}
}

// The three arrays follow the fixed part, one after the other, to the last byte.
func TestInvariant1Arrays(t *testing.T) {
	const capacity = 5
	mem := make([]byte, Size(capacity))
	items, numbers := split(mem, capacity)
	at := func(p unsafe.Pointer) uintptr { return uintptr(p) - uintptr(unsafe.Pointer(&mem[0])) }
	if a, b, c := at(unsafe.Pointer(&items[0])), at(unsafe.Pointer(&numbers[0][0])), at(unsafe.Pointer(&numbers[1][0])); a != 66432 || b != 66432+80 || c != 66432+100 {
		t.Errorf("items at %d, easy numbers at %d, hard numbers at %d", a, b, c)
	}
	if end := at(unsafe.Pointer(&numbers[1][capacity-1])) + 4; end != uintptr(len(mem)) {
		t.Errorf("layout ends at %d of %d bytes", end, len(mem))
	}
}

func TestNewRefuses(t *testing.T) {
	mem := make([]byte, Size(8))
	for _, c := range []struct {
		name     string
		mem      []byte
		capacity int
		want     error
	}{
		{"no capacity", mem, 0, ErrCapacity},
		{"negative", mem, -1, ErrCapacity},
		{"preposterous", mem, math.MaxInt, ErrCapacity},
		{"one byte short", mem[:len(mem)-1], 8, ErrMemory},
		{"nothing", nil, 1, ErrMemory},
		{"misaligned", mem[4:], 1, ErrMemory},
	} {
		q, err := New(c.mem, c.capacity, true, sinceStart)
		wantErr(t, err, c.want)
		if q != nil {
			t.Errorf("%s: queues beside an error", c.name)
		}
	}
	for _, n := range []int{-1, 0, MaxCapacity + 1} {
		if Size(n) != 0 {
			t.Errorf("Size(%d) = %d, want 0", n, Size(n))
		}
	}
}
