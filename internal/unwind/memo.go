package unwind

import "sync"

const maxMemo = 1 << 13 // addresses that one memo keeps; a row may have some KiB

// memo keeps what was found out about an address. It is safe for concurrent use;
// the zero value is empty.
type memo[T any] struct {
	mu    sync.Mutex
	known map[uint64]T
}

func (m *memo[T]) get(addr uint64) (v T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok = m.known[addr]
	return v, ok
}

// put forgets all others when there are too many.
func (m *memo[T]) put(addr uint64, v T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = make(map[uint64]T)
	}
	if len(m.known) >= maxMemo {
		clear(m.known)
	}
	m.known[addr] = v
}
