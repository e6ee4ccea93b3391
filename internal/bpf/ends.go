package bpf

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"stackshot/internal/capture"
	"stackshot/internal/clock"
	"stackshot/kcdata"
)

// WantedEnd is something that a thread waits for. What is 0 in it does not count.
type WantedEnd struct {
	Kind                uint32   // kcdata.File* kinds
	Object, Peer, File  uint64   // as in kcdata.LinuxFile
	Inode, Dev          uint64   // Lock: the file; Dev is s_dev as major<<32 | minor
	Family, Sort        uint16   // of a socket: AF_*, SOCK_*
	NetNS               uint32   // of a socket: inode of its network namespace
	LocalPort, PeerPort uint16   // of a socket with internet addresses
	Local, Remote       [16]byte // likewise; IPv4 in the first four bytes, or as ::ffff:a.b.c.d
	Lock                bool     // wanted are only those who have locks on (Dev, Inode)
}

// WantedThread is a thread of which it is asked whether it has run since.
type WantedThread struct {
	Tid      uint32 // in the recorded pid namespace
	Start    uint64 // start_boottime, ns
	Switches uint64 // nvcsw + nivcsw in the window
	Sends    uint64 // the unix socket (LinuxFile.Object) that it connects, or sends from; 0: neither
}

// FoundEnds is what one pass found. Every server of FUSE is among the ends, with its
// connection's requests, whether wanted or not.
//
// A WantedEnd of Kind FileUserfaultfd with Object 0 wants every userfaultfd of the machine:
// a thread in a page fault has no descriptor. Such an end has EndServes, Of is its own Object,
// Peer the mm_struct that it serves, and Backlog the tgid of the process whose memory that
// is, in the recorded pid namespace; 0: not known.
//
// An end with EndRoom is the unix socket in whose queue there is no room for what a thread of
// WantedThread.Sends sends: a listener (EndAccepts, too) or a datagram socket (EndPeer, too).
//
// A listener (EndListens) that was found by its port has EndAccepts if no descriptor leads
// to the other end of the connection. If one does (EndPair), one listener is kept, to say
// whose port it is.
type FoundEnds struct {
	Ends    []kcdata.LinuxEnd
	FUSE    []kcdata.LinuxFUSE
	Waiters map[capture.WaiterID]capture.Waiter // a thread that is gone does not wait still
	Looked  uint64                              // descriptors that were looked at
	Crowded uint64                              // ends that are not kept since their object has many (64 readers, 64 others)
	TimeUp  bool                                // there were descriptors left, or threads: those are not in Waiters
	TooMany bool                                // more ends than are kept
	Ns      uint64
}

// EndPassOptions is fixed when the programs are loaded.
type EndPassOptions struct {
	Level uint32 // depth of the recorded pid namespace; 0: the first
}

// EndPass looks through all open files of the machine, after the release. It is for one
// caller at a time.
type EndPass struct {
	options EndPassOptions
	coll    *ebpf.Collection
	room    int // of the maps of what is wanted
	most    int // ends that are kept
	// What the maps hold of the last Look.
	lastKeys    []endsObjectEndKey
	lastThreads []endsObjectThreadKey

	running chan struct{} // of a Look that was left behind; closed when it has ended
}

// endRoom is the room of the maps at first. A Look that needs more loads the programs again.
const endRoom = 16 << 10

// servedRoom is what the programs add to the map of what is wanted: servers of FUSE, and
// userfaultfds.
const servedRoom = 4 << 10

// OpenEndPass loads the programs. Errors are of kind ErrUnsupported.
func OpenEndPass(o EndPassOptions) (*EndPass, error) {
	p := &EndPass{options: o, most: maxEnds}
	if err := p.load(endRoom); err != nil {
		return nil, err
	}
	for _, name := range []string{endsObjectProgLookAtFiles, endsObjectProgLookAtThreads} {
		var it Iterator
		if errno := it.Open(p.coll.Programs[name].FD(), &Scope{}); errno != 0 {
			return nil, errors.Join(fmt.Errorf("%w: iterator %s: %w", ErrUnsupported, name, errno), p.Close())
		}
		it.Close()
	}
	return p, nil
}

// load replaces the programs by others with that much room.
func (p *EndPass) load(room int) error {
	spec, err := loadEndsObject()
	if err != nil {
		return fmt.Errorf("committed object: %w", err)
	}
	if err := setValues(spec, map[string]uint32{endsObjectVarCfgLevel: p.options.Level}); err != nil {
		return err
	}
	spec.Maps[endsObjectMapWanted].MaxEntries = uint32(room + servedRoom)
	spec.Maps[endsObjectMapThreads].MaxEntries = uint32(room)
	coll, err := newCollection(spec, nil)
	if err != nil {
		return fmt.Errorf("%w: pass over open files: %w", ErrUnsupported, rights(err))
	}
	p.closeMaps()
	p.coll, p.room, p.lastKeys, p.lastThreads = coll, room, nil, nil
	return nil
}

// errLeftBehind: the kernel still runs the last one.
var errLeftBehind = errors.New("the last pass over open files has not ended")

// grace is how much longer than it should a pass may take before Look leaves it behind.
const grace = 50 * time.Millisecond

// Look finds who has open what is wanted, and what became of the threads. It ends at until,
// whatever is left; if a read does not end then, nothing was found.
func (p *EndPass) Look(ends []WantedEnd, threads []WantedThread, until time.Time) (*FoundEnds, error) {
	began := time.Now()
	if p.running != nil {
		select {
		case <-p.running:
			p.running = nil
		case <-time.After(time.Until(until)):
			return nil, errLeftBehind
		}
	}
	l := &look{pass: p, keys: keysOf(ends, threads), threads: threads, until: until}
	var out *FoundEnds
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, err = l.run()
	}()
	late := time.NewTimer(time.Until(until) + grace)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		p.running = done
		return &FoundEnds{TimeUp: true, Ns: uint64(time.Since(began))}, nil
	}
	if err != nil {
		return nil, err
	}
	out.Ns = uint64(time.Since(began))
	return out, nil
}

// Close unloads the programs. After a pass that was left behind it waits for its end.
func (p *EndPass) Close() error {
	if p.running != nil {
		<-p.running
	}
	p.closeMaps()
	return nil
}

func (p *EndPass) closeMaps() {
	if p.coll != nil {
		p.coll.Close()
	}
	p.coll = nil
}

// monotonic is a moment as bpf_ktime_get_ns counts.
func monotonic(at time.Time) uint64 {
	return uint64(max(clock.Nanotime()+int64(time.Until(at)), 0))
}
