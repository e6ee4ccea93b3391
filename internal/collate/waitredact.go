package collate

import "stackshot/kcdata"

// numbering gives each thing a number, 1 for the first. The same thing has the same number in
// the whole file.
type numbering[K comparable] map[K]uint64

func (n numbering[K]) of(key K) uint64 {
	v, ok := n[key]
	if !ok {
		v = uint64(len(n)) + 1
		n[key] = v
	}
	return v
}

// wordKey is what makes two futex words the same: for a private call process and address, for a
// shared one the place, if it is known.
type wordKey struct {
	tgid uint32 // 0: addr is a place
	addr uint64
}

// redacted takes out of f what tells of addresses and memory.
func (w *waits) redacted(f *kcdata.LinuxFutex, tgid uint32) {
	key := wordKey{tgid, f.Addr}
	if f.Flags&kcdata.FutexPrivate == 0 && f.Place != 0 {
		key = wordKey{0, f.Place}
	}
	f.Addr, f.Place, f.Expected, f.Have, f.Around = w.words.of(key), 0, 0, 0, [len(f.Around)]byte{}
}
