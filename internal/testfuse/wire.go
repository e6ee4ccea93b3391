//go:build linux

package testfuse

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// What of the FUSE protocol (include/uapi/linux/fuse.h, 7.31) file systems of
// tests need. Native byte order.
const (
	Lookup  = 1
	Forget  = 2
	Getattr = 3
	Setattr = 4
	Unlink  = 10
	Rename  = 12
	Open    = 14
	Read    = 15
	Write   = 16
	Statfs  = 17
	Release = 18
	Fsync   = 20
	Flush   = 25
	initOp  = 26
	Opendir = 27
	Readdir = 28
	Reldir  = 29
	Access  = 34
	Create  = 35
	Intr    = 36
	BForget = 42
	Rename2 = 45

	OpenDirectIO  = 1
	OpenKeepCache = 2 // or open itself would wait for a page that is being read

	Root = 1 // node id of the directory that is mounted

	major    = 7
	minor    = 31
	maxWrite = 1 << 17 // a request is this and one page at most
)

// InHeader begins every request.
type InHeader struct {
	Len, Opcode     uint32
	Unique, Node    uint64
	UID, GID, Pid   uint32
	ExtLen, Padding uint16
}

type outHeader struct {
	Len    uint32
	Error  int32
	Unique uint64
}

type initOut struct {
	Major, Minor, MaxReadahead, Flags uint32
	MaxBackground, Congestion         uint16
	MaxWrite, TimeGran                uint32
	MaxPages, MapAlign                uint16
	Unused                            [8]uint32
}

// Attr is what stat says of a node.
type Attr struct {
	Ino, Size, Blocks, Atime, Mtime, Ctime           uint64
	AtimeNs, MtimeNs, CtimeNs, Mode, Nlink, UID, GID uint32
	Rdev, Blksize, Flags                             uint32
}

// AttrOut answers Getattr and Setattr. Valid is in seconds.
type AttrOut struct {
	Valid        uint64
	ValidNs, Pad uint32
	Attr         Attr
}

// EntryOut answers Lookup and, before an OpenOut, Create.
type EntryOut struct {
	Node, Generation, EntryValid, AttrValid uint64
	EntryValidNs, AttrValidNs               uint32
	Attr                                    Attr
}

// OpenOut answers Open and Opendir.
type OpenOut struct {
	Handle     uint64
	Flags, Pad uint32
}

// IO begins the body of Read and of Write.
type IO struct {
	Handle, Offset uint64
	Size           uint32
}

// WriteOut answers Write.
type WriteOut struct{ Size, Pad uint32 }

// RootAttr is that of the directory that is mounted.
func RootAttr() Attr { return Attr{Ino: Root, Mode: unix.S_IFDIR | 0o755, Nlink: 2} }

// Wire gives structs of this package the form of an answer's body.
func Wire(parts ...any) []byte {
	var b []byte
	for _, v := range parts {
		var err error
		if b, err = binary.Append(b, binary.NativeEndian, v); err != nil {
			panic(err) // a struct without a fixed size
		}
	}
	return b
}
