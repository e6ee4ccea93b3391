package bpf

import (
	"time"

	"stackshot/internal/capture"
	"stackshot/kcdata"
)

// WantedEnd is something that a thread waits for. What is 0 in it does not count.
type WantedEnd struct {
	Kind                uint32 // kcdata.File* kinds
	Object, Peer, File  uint64 // as in kcdata.LinuxFile
	Inode, Dev          uint64 // Lock: the file; Dev is s_dev as major<<32 | minor
	Family, Sort        uint16 // of a socket: AF_*, SOCK_*
	NetNS               uint32 // of a socket: inode of its network namespace
	LocalPort, PeerPort uint16
	Local, Remote       [16]byte
	Lock                bool // wanted are those who have locks on (Dev, Inode)
}

// WantedThread is a thread of which it is asked whether it has run since.
type WantedThread struct {
	Tid      uint32 // in the recorded pid namespace
	Start    uint64 // start_boottime, ns
	Switches uint64 // nvcsw + nivcsw in the window
}

// FoundEnds is what one pass found.
//
// A WantedEnd of Kind FileUserfaultfd with Object 0 wants every userfaultfd of the machine:
// a thread in a page fault has no descriptor. An end's Of is then its own Object, Peer the
// mm_struct that it serves, and Backlog the tgid of the process whose memory that is.
type FoundEnds struct {
	Ends    []kcdata.LinuxEnd
	FUSE    []kcdata.LinuxFUSE
	Waiters map[capture.WaiterID]capture.Waiter // threads that are gone are not in it
	Looked  uint64                              // descriptors that were looked at
	Crowded uint64                              // ends beyond the first 64 of one object: counted, not kept
	TimeUp  bool                                // there were descriptors left
	TooMany bool                                // more ends than are kept
	Ns      uint64
}

// EndPassOptions is fixed when the programs are loaded.
type EndPassOptions struct {
	Level uint32 // depth of the recorded pid namespace; 0: the first
}

// EndPass looks once through all open files of the machine, after the release. It is for
// one caller at a time.
type EndPass struct{}

// OpenEndPass loads the programs. Errors are of kind ErrUnsupported.
func OpenEndPass(o EndPassOptions) (*EndPass, error) { return nil, ErrUnsupported }

// Look finds who has open what is wanted, and what became of the threads. It ends at until,
// whatever is left.
func (p *EndPass) Look(ends []WantedEnd, threads []WantedThread, until time.Time) (*FoundEnds, error) {
	return nil, ErrUnsupported
}

// Close unloads the programs.
func (p *EndPass) Close() error { return nil }
