package bpf

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

func v4(a, b, c, d byte) [16]byte { return [16]byte{a, b, c, d} }
func v4In6(a, b, c, d byte) [16]byte {
	return [16]byte{10: 0xff, 11: 0xff, 12: a, 13: b, 14: c, 15: d}
}

// A connection has one key, however its IPv4 addresses are written.
func TestPairKeys(t *testing.T) {
	w := WantedEnd{Family: unix.AF_INET, Sort: unix.SOCK_STREAM, NetNS: 7, LocalPort: 1, PeerPort: 2, Local: v4(10, 0, 0, 1), Remote: v4(10, 0, 0, 2)}
	want := pairKey(&w)
	if want.LocalPort != 2 || want.PeerPort != 1 || want.V4 != 1 || want.Local[0] == want.Remote[0] || want.Local[1] != 0 {
		t.Errorf("%+v", want)
	}
	w.Family, w.Local, w.Remote = unix.AF_INET6, v4In6(10, 0, 0, 1), v4In6(10, 0, 0, 2)
	if got := pairKey(&w); got != want {
		t.Errorf("mapped: %+v, want %+v", got, want)
	}
	w.Local, w.Remote = v4(10, 0, 0, 1), v4(10, 0, 0, 2)
	if got := pairKey(&w); got != want {
		t.Errorf("shortened: %+v, want %+v", got, want)
	}
	w.Local, w.Remote = [16]byte{15: 1}, [16]byte{15: 1}
	if got := pairKey(&w); got.V4 != 0 || got == want {
		t.Errorf("IPv6: %+v", got)
	}
}

// What several threads wait for is looked for once; a lock is no reason to look for who has
// the file open.
func TestKeysAreMerged(t *testing.T) {
	pipe := WantedEnd{Kind: kcdata.FilePipe, Object: 8}
	client := WantedEnd{Kind: kcdata.FileSocket, Family: unix.AF_UNIX, Sort: unix.SOCK_DGRAM, Object: 16, Peer: 24}
	other := client
	other.Object = 32
	lock := WantedEnd{Kind: kcdata.FileFIFO, Object: 8, Inode: 3, Dev: 4, Lock: true}
	k := keysOf([]WantedEnd{pipe, pipe, client, other, lock, {Kind: kcdata.FileUserfaultfd}, {Kind: kcdata.FileRegular, Object: 40}}, nil)
	if len(k.list) != 7 { // pipe; each client, who sends to it; their server; the lock
		t.Errorf("%d keys: %+v", len(k.list), k.list)
	}
	at := k.place[endsObjectEndKey{By: byObject, Local: [2]uint64{24}}]
	if r := k.reasons[at]; len(r) != 2 || r[0].of != 16 || r[1].of != 32 || r[0].flags != kcdata.EndPeer {
		t.Errorf("the server is wanted for %+v", r)
	}
	if k.asks != askLocks|askUserfaultfd|askUnix|askPeers {
		t.Errorf("asks %#x", k.asks)
	}
}

// joinedPorts gives the ends of one connection from remote, of which a listener was found, and
// the other end if paired.
func joinedPorts(w WantedEnd, bound [16]byte, family uint16, paired bool) []kcdata.LinuxEnd {
	k := keysOf([]WantedEnd{w}, nil)
	port := k.place[endsObjectEndKey{By: byPort, Netns: w.NetNS, LocalPort: w.PeerPort, Sort: w.Sort}]
	var f foundParts
	for fd := range int32(3) {
		f.ends = append(f.ends, endOut{What: outEnd, Index: uint32(port), End: kcdata.LinuxEnd{
			Flags: kcdata.EndListens, Object: 64, Fd: fd, Tgid: 5, Family: family, Local: bound,
		}})
	}
	if paired {
		f.ends = append(f.ends, endOut{What: outEnd, Index: uint32(k.place[pairKey(&w)]), End: kcdata.LinuxEnd{Flags: kcdata.EndPair, Object: 72, Tgid: 6}})
	}
	out, _ := f.joined(k, maxEnds)
	return out
}

// A listener has a connection only if its address leads there, and nobody else has it.
func TestJoinPorts(t *testing.T) {
	local := WantedEnd{Kind: kcdata.FileSocket, Object: 8, Family: unix.AF_INET, Sort: unix.SOCK_STREAM, LocalPort: 1, PeerPort: 2, Local: v4(127, 0, 0, 1), Remote: v4(127, 0, 0, 1)}
	away := local
	away.Local, away.Remote = v4(192, 0, 2, 1), v4(192, 0, 2, 7)
	all := [16]byte{}
	for _, c := range []struct {
		name   string
		w      WantedEnd
		bound  [16]byte
		family uint16
		paired bool
		flags  []uint32
	}{
		{"loopback, bound to all", local, all, unix.AF_INET, false, []uint32{kcdata.EndListens | kcdata.EndAccepts, kcdata.EndListens | kcdata.EndAccepts, kcdata.EndListens | kcdata.EndAccepts}},
		{"bound to all of IPv6", local, all, unix.AF_INET6, false, []uint32{kcdata.EndListens | kcdata.EndAccepts, kcdata.EndListens | kcdata.EndAccepts, kcdata.EndListens | kcdata.EndAccepts}},
		{"bound to another address", local, v4(127, 0, 0, 2), unix.AF_INET, false, nil},
		{"accepted", local, all, unix.AF_INET, true, []uint32{kcdata.EndListens, kcdata.EndPair}},
		{"to another machine", away, all, unix.AF_INET, false, nil},
	} {
		var flags []uint32
		for _, e := range joinedPorts(c.w, c.bound, c.family, c.paired) {
			flags = append(flags, e.Flags)
			if e.Of != 8 {
				t.Errorf("%s: of %d", c.name, e.Of)
			}
		}
		if !slices.Equal(flags, c.flags) {
			t.Errorf("%s: %#x, want %#x", c.name, flags, c.flags)
		}
	}
}

// Bytes that no program writes are an error, not ends.
func TestTornEnds(t *testing.T) {
	for _, b := range [][]byte{make([]byte, 4), make([]byte, 200), {0: outEnd, 100: 0}, {0: outFUSE, 20: 0}} {
		var f foundParts
		if err := f.parse(b); err == nil || len(f.ends)+len(f.fuse) > 0 {
			t.Errorf("%d bytes: %v, %d ends", len(b), err, len(f.ends))
		}
	}
}

// A process that is shown once for each of its threads has each end once.
func TestEndsOnce(t *testing.T) {
	k := keysOf([]WantedEnd{{Kind: kcdata.FilePipe, Object: 8}}, nil)
	e := endOut{What: outEnd, End: kcdata.LinuxEnd{Object: 8, Tgid: 5, Fd: 3, Flags: kcdata.EndReads}}
	f := foundParts{ends: []endOut{e, e, e}}
	if out, more := f.joined(k, maxEnds); len(out) != 1 || more || out[0].Flags != kcdata.EndReads|kcdata.EndSame {
		t.Errorf("%+v, %v", out, more)
	}
	e.End.Fd = 4
	f.ends = append(f.ends, e)
	if out, more := f.joined(k, 1); len(out) != 1 || !more {
		t.Errorf("room for one: %+v, %v", out, more)
	}
}
