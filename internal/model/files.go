package model

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"

	"stackshot/kcdata"
)

// fileKinds are the stable names of kcdata.File* kinds.
var fileKinds = [...]string{
	kcdata.FileOther: "other", kcdata.FileRegular: "regular", kcdata.FileDirectory: "directory", kcdata.FileBlock: "block", kcdata.FileChar: "char",
	kcdata.FilePipe: "pipe", kcdata.FileFIFO: "fifo", kcdata.FileSocket: "socket", kcdata.FileTerminal: "terminal", kcdata.FilePTMaster: "pty_master",
	kcdata.FileEpoll: "epoll", kcdata.FileEventfd: "eventfd", kcdata.FileTimerfd: "timerfd", kcdata.FileSignalfd: "signalfd", kcdata.FilePidfd: "pidfd",
	kcdata.FileInotify: "inotify", kcdata.FileFanotify: "fanotify", kcdata.FileUserfaultfd: "userfaultfd", kcdata.FileFUSE: "fuse", kcdata.FileIOUring: "io_uring",
}

// fileOps are the stable names of kcdata.FileOp*.
var fileOps = [...]string{
	kcdata.FileOpOther: "other", kcdata.FileOpRead: "read", kcdata.FileOpWrite: "write", kcdata.FileOpAccept: "accept", kcdata.FileOpConnect: "connect",
	kcdata.FileOpPoll: "poll", kcdata.FileOpEpoll: "epoll", kcdata.FileOpFlock: "flock", kcdata.FileOpPOSIX: "posix_lock", kcdata.FileOpOFD: "ofd_lock",
	kcdata.FileOpSync: "sync", kcdata.FileOpIoctl: "ioctl", kcdata.FileOpOpen: "open", kcdata.FileOpClose: "close",
}

// FileKind is the stable name of what an open file is; "unknown" for one of a later version.
func FileKind(kind uint32) string { return nameAt(fileKinds[:], kind) }

// FileOp is the stable name of what a call does with a file; likewise.
func FileOp(op uint32) string { return nameAt(fileOps[:], op) }

func nameAt(names []string, i uint32) string {
	if uint64(i) < uint64(len(names)) {
		return names[i]
	}
	return "unknown"
}

// FileFlags are the names of kcdata.LinuxFile.Flags.
var FileFlags = Flags{
	{kcdata.FileToRead, "to_read"}, {kcdata.FileToWrite, "to_write"}, {kcdata.FilePolled, "polled"}, {kcdata.FileTimed, "timed"},
	{kcdata.FileClosed, "closed"}, {kcdata.FileUnread, "unread"}, {kcdata.FileNoSet, "no_set"}, {kcdata.FileEmpty, "empty"}, {kcdata.FileFull, "full"},
	{kcdata.FileOpaque, "opaque"}, {kcdata.FilePeerKnown, "peer_known"}, {kcdata.FileStill, "still"}, {kcdata.FileMoved, "moved"}, {kcdata.FileCatches, "catches"},
}

// SocketFlags are the names of kcdata.LinuxSocket.Flags.
var SocketFlags = Flags{
	{kcdata.SocketListens, "listens"}, {kcdata.SocketShutIn, "shut_in"}, {kcdata.SocketShutOut, "shut_out"}, {kcdata.SocketConnected, "connected"},
	{kcdata.SocketV4, "v4"}, {kcdata.SocketPeerCred, "peer_cred"},
	{kcdata.SocketNamed, "named"}, {kcdata.SocketPeerNamed, "peer_named"},
}

// FilesSources are the names of kcdata.LinuxFilesTaken.Sources.
var FilesSources = Flags{
	{kcdata.FilesHasTable, "descriptors"}, {kcdata.FilesHasUnix, "unix"}, {kcdata.FilesHasEpoll, "epoll"}, {kcdata.FilesHasTTY, "terminals"},
	{kcdata.FilesHasPass, "pass"}, {kcdata.FilesHasProc, "proc"}, {kcdata.FilesHasLocks, "locks"}, {kcdata.FilesHasMounts, "mounts"},
	{kcdata.FilesHasDevices, "devices"}, {kcdata.FilesHasFUSE, "fuse"},
}

// FilesNotDone are the names of kcdata.LinuxFilesTaken.Flags.
var FilesNotDone = Flags{
	{kcdata.FilesTimeUp, "time_up"}, {kcdata.FilesTooMany, "too_many"}, {kcdata.FilesNoLocks, "no_locks"}, {kcdata.FilesNoMounts, "no_mounts"},
	{kcdata.FilesNoPass, "no_pass"}, {kcdata.FilesHung, "hung"}, {kcdata.FilesTooWanted, "too_wanted"},
}

// Address families of Linux.
const (
	afUnix  = 1
	afInet  = 2
	afInet6 = 10
)

// families are the stable names of address families; others are numbers.
var families = map[uint16]string{afUnix: "unix", afInet: "inet", afInet6: "inet6", 16: "netlink", 17: "packet", 38: "alg", 40: "vsock"}

// SocketFamily is the name of an address family, or its number.
func SocketFamily(f uint16) string { return cmp.Or(families[f], fmt.Sprint(f)) }

// SocketAddress is an address with its port, "192.0.2.7:5432"; "" if the family has none, or the
// file is redacted. An IPv4 address may be written as one of IPv6.
func SocketAddress(family uint16, addr [16]byte, port uint16) string {
	if port == 0 && addr == [16]byte{} || family != afInet && family != afInet6 {
		return ""
	}
	ip := netip.AddrFrom16(addr).Unmap()
	if family == afInet || binary.NativeEndian.Uint32(addr[:]) != 0 && [12]byte(addr[4:]) == [12]byte{} {
		ip = netip.AddrFrom4([4]byte(addr[:4]))
	}
	return netip.AddrPortFrom(ip, port).String()
}

// DeviceText is "8:1" for a device as kcdata has it: major<<32 | minor.
func DeviceText(dev uint64) string { return fmt.Sprintf("%d:%d", dev>>32, uint32(dev)) }
