package bpf

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

// By what the programs find a file (ends_types.h, enum end_by).
const (
	byObject = 1
	byPeer   = 2
	byFile   = 3
	byPair   = 4
	byPort   = 5
	byRoom   = 7
)

// What the programs are asked for beside objects (ASK_*).
const (
	askLocks       = 1 << 0
	askInet        = 1 << 1
	askUserfaultfd = 1 << 2
	askPeers       = 1 << 3 // unix sockets by their peers
	askUnix        = 1 << 4
	askRoom        = 1 << 5 // unix sockets in whose queue a thread waits for room
)

// reason is one wait for which a key is looked for.
type reason struct {
	of     uint64 // the waiting LinuxFile's object
	flags  uint32 // that its ends have
	wanted *WantedEnd
}

// endKeys are what the programs look for.
type endKeys struct {
	list    []endsObjectEndKey
	reasons [][]reason // by index in list
	place   map[endsObjectEndKey]int
	asks    uint32
}

// maxReasons is for how many waits one end is recorded at most: the thousand clients of a
// server whose queue is full.
const maxReasons = 1024

func keysOf(ends []WantedEnd, threads []WantedThread) *endKeys {
	k := &endKeys{place: map[endsObjectEndKey]int{}}
	for i := range ends {
		k.want(&ends[i])
	}
	for _, t := range threads {
		if t.Sends != 0 {
			k.asks |= askRoom
			k.word(byRoom, t.Sends, &WantedEnd{Object: t.Sends}, 0)
		}
	}
	return k
}

func (k *endKeys) add(key endsObjectEndKey, w *WantedEnd, flags uint32) {
	at, ok := k.place[key]
	if !ok {
		at = len(k.list)
		k.place[key] = at
		k.list, k.reasons = append(k.list, key), append(k.reasons, nil)
	}
	for _, r := range k.reasons[at] {
		if r.of == w.Object && r.flags == flags {
			return
		}
	}
	if len(k.reasons[at]) < maxReasons {
		k.reasons[at] = append(k.reasons[at], reason{of: w.Object, flags: flags, wanted: w})
	}
}

func (k *endKeys) word(by uint32, word uint64, w *WantedEnd, flags uint32) {
	if word != 0 {
		k.add(endsObjectEndKey{By: by, Local: [2]uint64{word}}, w, flags)
	}
}

func (k *endKeys) want(w *WantedEnd) {
	if w.Lock {
		k.asks |= askLocks
		k.add(endsObjectEndKey{By: byFile, Local: [2]uint64{w.Dev, w.Inode}}, w, 0)
		return
	}
	switch w.Kind {
	case kcdata.FileRegular, kcdata.FileDirectory, kcdata.FileBlock:
	case kcdata.FileUserfaultfd:
		if w.Object == 0 {
			k.asks |= askUserfaultfd
		}
		k.word(byObject, w.Object, w, kcdata.EndSame)
	default:
		k.word(byObject, w.Object, w, kcdata.EndSame)
		k.word(byObject, w.Peer, w, kcdata.EndPeer)
	}
	if w.Kind == kcdata.FileSocket {
		k.socket(w)
	}
}

// socket: many sockets may send to one datagram socket, whose own peer is another or none.
// Two that are connected are found by each other's addresses.
func (k *endKeys) socket(w *WantedEnd) {
	switch w.Family {
	case unix.AF_UNIX:
		k.asks |= askUnix
		if w.Sort == unix.SOCK_DGRAM || w.Peer == 0 {
			k.asks |= askPeers
			k.word(byPeer, w.Object, w, kcdata.EndPeer)
		}
	case unix.AF_INET, unix.AF_INET6:
		if w.PeerPort == 0 {
			return
		}
		k.asks |= askInet
		k.add(pairKey(w), w, 0)
		k.add(endsObjectEndKey{By: byPort, Netns: w.NetNS, LocalPort: w.PeerPort, Sort: w.Sort}, w, 0)
	}
}

// pairKey is the other end's view of a connection.
func pairKey(w *WantedEnd) endsObjectEndKey {
	local, v4 := address(w.Family, w.Local)
	remote, v4Remote := address(w.Family, w.Remote)
	key := endsObjectEndKey{
		By: byPair, Netns: w.NetNS, Sort: w.Sort, LocalPort: w.PeerPort, PeerPort: w.LocalPort, Local: words(remote), Remote: words(local),
	}
	if v4 && v4Remote {
		key.V4 = 1
	}
	return key
}

func words(a [16]byte) [2]uint64 {
	return [2]uint64{binary.NativeEndian.Uint64(a[:8]), binary.NativeEndian.Uint64(a[8:])}
}

// address gives an IPv4 address in its first four bytes, however it is written.
func address(family uint16, a [16]byte) (out [16]byte, v4 bool) {
	mapped := [12]byte{10: 0xff, 11: 0xff}
	switch {
	case family == unix.AF_INET:
		copy(out[:4], a[:4])
		return out, true
	case [12]byte(a[:12]) == mapped:
		copy(out[:4], a[12:])
		return out, true
	case [12]byte(a[4:]) == [12]byte{} && [4]byte(a[:4]) != [4]byte{}:
		return a, true
	}
	return a, false
}
