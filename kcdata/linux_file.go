package kcdata

// Open files that threads wait at, as the window records them, and what was read of the machine
// after the release: who has the other ends, locks of files, mounts, block devices, and requests
// that FUSE servers have not answered. Structs and ids follow the rules of linux.go.
const (
	TypeLinuxFilesTaken Type = 0x4C1C // LinuxFilesTaken, top level after the tasks; absent with --wait off and engine procfs
	TypeLinuxEnd        Type = 0x4C1D // array of LinuxEnd, top level after the tasks
	TypeLinuxFileLock   Type = 0x4C1E // array of LinuxFileLock, top level after the tasks
	TypeLinuxMount      Type = 0x4C1F // array of LinuxMount, top level after the tasks
	TypeLinuxDevice     Type = 0x4C20 // array of LinuxDevice, top level after the tasks
	TypeLinuxFUSE       Type = 0x4C21 // array of LinuxFUSE, top level after the tasks
	TypeLinuxFile       Type = 0x4CC2 // array of LinuxFile, in a THREAD that sleeps in a call with a descriptor: one for each, at most 16
	TypeLinuxSocket     Type = 0x4CC3 // array of LinuxSocket, in a THREAD: one for each LinuxFile that is a socket, in their order
)

// What an open file is, Kind of LinuxFile and LinuxEnd. The kinds come from the inode's mode,
// the file system's magic, the device and the name of an anonymous inode.
const (
	FileOther       = 0  // none of these
	FileRegular     = 1  // a regular file
	FileDirectory   = 2  // a directory
	FileBlock       = 3  // a block device
	FileChar        = 4  // a character device that is none below
	FilePipe        = 5  // of pipe(2)
	FileFIFO        = 6  // with a name
	FileSocket      = 7  // LinuxSocket or LinuxEnd has more
	FileTerminal    = 8  // a tty, and a pty's side of the program
	FilePTMaster    = 9  // a pty's side of the terminal emulator
	FileEpoll       = 10 // an epoll
	FileEventfd     = 11 // an eventfd
	FileTimerfd     = 12 // a timerfd
	FileSignalfd    = 13 // a signalfd
	FilePidfd       = 14 // a pidfd
	FileInotify     = 15 // an inotify group
	FileFanotify    = 16 // a fanotify group
	FileUserfaultfd = 17 // a userfaultfd
	FileFUSE        = 18 // /dev/fuse, opened by a server
	FileIOUring     = 19 // an io_uring
)

// What the call does with the file, LinuxFile.Op.
const (
	FileOpOther   = 0  // something else
	FileOpRead    = 1  // read, recv and their kin; getdents
	FileOpWrite   = 2  // write, send and their kin
	FileOpAccept  = 3  // accept, accept4
	FileOpConnect = 4  // connect
	FileOpPoll    = 5  // poll and select; with FilePolled one of several
	FileOpEpoll   = 6  // epoll_wait: the epoll itself, and with FilePolled one of its set
	FileOpFlock   = 7  // flock
	FileOpPOSIX   = 8  // fcntl(F_SETLKW)
	FileOpOFD     = 9  // fcntl(F_OFD_SETLKW)
	FileOpSync    = 10 // fsync, fdatasync, syncfs, msync
	FileOpIoctl   = 11 // ioctl
	FileOpOpen    = 12 // openat of a FIFO: Fd is -1, and the rest is what the window could find of it (nothing, mostly)
	FileOpClose   = 13 // close
)

// Bits of LinuxFile.Flags.
const (
	FileToRead    = 1 << 0  // it waits for something to read, or for a connection
	FileToWrite   = 1 << 1  // it waits for room to write
	FilePolled    = 1 << 2  // one of the set of poll, select or epoll
	FileTimed     = 1 << 3  // the call has a timeout
	FileClosed    = 1 << 4  // the descriptor names no open file (closed meanwhile)
	FileUnread    = 1 << 5  // a pointer does not lead to ordinary memory: the fields behind Op are 0
	FileNoSet     = 1 << 6  // the set of poll or select is not in memory, or a row of it; or it is select's with more than 2,048 descriptors, of which the rest is not looked at
	FileEmpty     = 1 << 7  // a pipe without bytes
	FileFull      = 1 << 8  // a pipe without room
	FileOpaque    = 1 << 9  // this kernel does not tell what the file leads to: object, peer and bytes are 0 (unix sockets as a module without type information, and other things)
	FilePeerKnown = 1 << 10 // peer is valid, also if it is 0: then nobody is connected
	FileStill     = 1 << 16 // after the release: its thread had not run since the window, so what LinuxEnd says is of the same wait
	FileMoved     = 1 << 17 // after the release: its thread had run, or was gone
	FileCatches   = 1 << 18 // after the release: its process has a handler for signals, which may end the wait
)

// LinuxFile is one open file that a thread waits at. Object is an address of the kernel, by
// which ends are matched: the pipe (pipe_inode_info), the socket (sock), the tty_struct, the
// eventfd_ctx, timerfd_ctx, userfaultfd_ctx, fsnotify_group, eventpoll, fuse_conn, or else the
// inode. Redacted: running numbers, the same for the same thing, in all records of this page.
type LinuxFile struct {
	Flags     uint32   `kc:"flags"` // File*
	Op        uint32   `kc:"op"`    // FileOp*
	Kind      uint32   `kc:"kind"`  // File* kinds
	Fd        int32    `kc:"fd"`
	Object    uint64   `kc:"object"`  // what it leads to; 0: not known
	Peer      uint64   `kc:"peer"`    // the other end's object, if it has one of its own: a unix peer's sock, the other tty_struct
	File      uint64   `kc:"file"`    // the open file description
	Inode     uint64   `kc:"inode"`   // i_ino
	Dev       uint64   `kc:"dev"`     // s_dev: major<<32 | minor
	Rdev      uint64   `kc:"rdev"`    // of a device, likewise
	Magic     uint64   `kc:"magic"`   // s_magic of the file system
	Mode      uint32   `kc:"mode"`    // i_mode
	OFlags    uint32   `kc:"o_flags"` // f_flags of open(2)
	Events    uint32   `kc:"events"`  // poll, epoll: which are wanted
	Readers   uint32   `kc:"readers"` // a pipe's, as the kernel counts open files
	Writers   uint32   `kc:"writers"` // likewise
	Reserved  uint32   `kc:"reserved"`
	Bytes     uint64   `kc:"bytes"`      // that wait to be read: in a pipe, a socket, a terminal; an eventfd's count
	Room      uint64   `kc:"room"`       // of a pipe: its buffers in bytes
	LockStart uint64   `kc:"lock_start"` // FileOpPOSIX, FileOpOFD: the range as the call names it (struct flock)
	LockLen   uint64   `kc:"lock_len"`
	LockHow   uint32   `kc:"lock_how"` // l_type | l_whence<<16; FileOpFlock: the operation
	NetNS     uint32   `kc:"netns"`    // of a socket: inode of its network namespace
	Name      [24]byte `kc:"name"`     // of an anonymous inode, "[eventpoll]"; else 0
}

// Bits of LinuxSocket.Flags.
const (
	SocketListens   = 1 << 0 // it listens
	SocketShutIn    = 1 << 1 // RCV_SHUTDOWN: the other side sends no more
	SocketShutOut   = 1 << 2 // SEND_SHUTDOWN
	SocketConnected = 1 << 3 // the kernel says that it is connected
	SocketV4        = 1 << 4 // addresses of family AF_INET6 that are IPv4 (::ffff:a.b.c.d)
	SocketPeerCred  = 1 << 5 // peer_tgid is known
	SocketNamed     = 1 << 6 // unix: it has an address; one that was accepted has its listener's
	SocketPeerNamed = 1 << 7 // unix: the other end has one
)

// LinuxSocket is a socket among the LinuxFiles of a thread.
type LinuxSocket struct {
	Flags     uint32   `kc:"flags"` // Socket*
	Fd        int32    `kc:"fd"`
	Family    uint16   `kc:"family"` // AF_*
	Kind      uint16   `kc:"kind"`   // SOCK_*
	Protocol  uint16   `kc:"protocol"`
	State     uint16   `kc:"state"` // sk_state: TCP_* of include/net/tcp_states.h
	LocalPort uint16   `kc:"local_port"`
	PeerPort  uint16   `kc:"peer_port"`
	NetNS     uint32   `kc:"netns"`
	Local     [16]byte `kc:"local"`       // address; IPv4 in the first four bytes; redacted: 0, the ports too
	Remote    [16]byte `kc:"remote"`      // likewise
	Inode     uint64   `kc:"inode"`       // of the socket
	PeerInode uint64   `kc:"peer_inode"`  // unix: of the other end; 0: not known
	BytesIn   uint64   `kc:"bytes_in"`    // received, and not read yet
	BytesOut  uint64   `kc:"bytes_out"`   // sent, and not taken by the other side yet
	Backlog   uint32   `kc:"backlog"`     // listening: connections that wait to be accepted
	BacklogTo uint32   `kc:"backlog_max"` // how many may
	PeerTgid  uint32   `kc:"peer_tgid"`   // unix: who connected, or listened (SO_PEERCRED), in the recorded pid namespace
	Error     uint32   `kc:"error"`       // sk_err
}

// Bits of LinuxEnd.Flags.
const (
	EndReads   = 1 << 0 // opened for reading
	EndWrites  = 1 << 1 // opened for writing
	EndListens = 1 << 2 // a listening socket
	EndLocks   = 1 << 3 // this open file description, or this process, has a lock on the file
	EndPair    = 1 << 4 // of: found by the pair of addresses (TCP, UDP), in one network namespace
	EndSame    = 1 << 5 // the object of the wait itself is open here
	EndPeer    = 1 << 6 // the other end of the object is open here
	EndAccepts = 1 << 7 // it listens for a connection that nobody has accepted yet, of which the object is one side
	EndServes  = 1 << 8 // by it a server answers: /dev/fuse, a userfaultfd
	EndRoom    = 1 << 9 // a unix socket: the thread sleeps until there is room in its queue
)

// LinuxEnd is one descriptor of a process that leads to what a thread waits for, or to its
// other end. It was read after the release: the descriptor may be younger than the window.
type LinuxEnd struct {
	Flags    uint32   `kc:"flags"`  // End*
	Kind     uint32   `kc:"kind"`   // File* kinds
	Object   uint64   `kc:"object"` // what it leads to, as in LinuxFile
	Peer     uint64   `kc:"peer"`   // likewise; of a userfaultfd the memory that it serves (mm_struct)
	Of       uint64   `kc:"of"`     // the object of the waiting LinuxFile to which it belongs; of FUSE and a userfaultfd with EndServes its own
	File     uint64   `kc:"file"`   // the open file description: several descriptors may share it
	Inode    uint64   `kc:"inode"`
	Dev      uint64   `kc:"dev"`   // FileFUSE: the file system's device (st_dev of its files); else s_dev: major<<32 | minor
	Start    uint64   `kc:"start"` // start_boottime of the process's leader, ns
	Tgid     uint32   `kc:"tgid"`  // in the recorded pid namespace
	Fd       int32    `kc:"fd"`
	Refs     uint32   `kc:"refs"`     // references to the open file description
	Backlog  uint32   `kc:"backlog"`  // listening: connections not accepted; of a userfaultfd the process whose memory it serves, in the recorded pid namespace (0: not known)
	BytesIn  uint64   `kc:"bytes_in"` // a socket's or pipe's bytes that wait to be read here
	Family   uint16   `kc:"family"`
	Sort     uint16   `kc:"sort"` // SOCK_*
	Port     uint16   `kc:"local_port"`
	PeerPort uint16   `kc:"peer_port"`
	NetNS    uint32   `kc:"netns"`
	LockKind uint32   `kc:"lock_kind"` // EndLocks: FileLock* kinds
	Local    [16]byte `kc:"local"`
	Remote   [16]byte `kc:"remote"`
}

// Kinds of LinuxFileLock.
const (
	FileLockFlock   = 1 // of flock(2)
	FileLockPOSIX   = 2 // of fcntl(F_SETLK): it belongs to a process
	FileLockOFD     = 3 // of fcntl(F_OFD_SETLK): it belongs to an open file description
	FileLockLease   = 4 // a delegation too
	FileLockUnknown = 5 // a kind that this version does not know
)

// Bits of LinuxFileLock.Flags.
const (
	FileLockWrite  = 1 << 0 // exclusive
	FileLockWaits  = 1 << 1 // somebody who waits for the lock of this number, not who has it
	FileLockNested = 1 << 2 // it waits for a waiter (-> -> in the file)
	FileLockBreaks = 1 << 3 // a lease that is being broken
)

// LinuxFileLock is one row of /proc/locks, of a file that a thread waits at.
type LinuxFileLock struct {
	Number uint32 `kc:"number"` // of the lock; its waiters have the same
	Kind   uint32 `kc:"kind"`   // FileLock* kinds
	Flags  uint32 `kc:"flags"`
	Tgid   uint32 `kc:"tgid"` // 0: the kernel names nobody (OFD), or nobody here
	Dev    uint64 `kc:"dev"`  // major<<32 | minor
	Inode  uint64 `kc:"inode"`
	Start  uint64 `kc:"start"` // bytes; of the range
	End    uint64 `kc:"end"`   // last byte; all ones: to the end of the file
	Began  uint64 `kc:"began"` // start_boottime of the process, ns; 0: not known
}

// Bits of LinuxMount.Flags.
const (
	MountForeign = 1 << 0 // of another mount namespace than the tool's: point is as tgid sees it
	MountClipped = 1 << 1 // point or source is cut
	MountLarge   = 1 << 2 // one of more mounts than the file has (last element)
)

// LinuxMount is a mount. Redacted: point and source are empty.
type LinuxMount struct {
	Dev    uint64    `kc:"dev"` // st_dev of its files: major<<32 | minor
	ID     uint32    `kc:"id"`
	Flags  uint32    `kc:"flags"`
	Tgid   uint32    `kc:"tgid"` // MountForeign: a process that sees it
	NS     uint32    `kc:"ns"`   // inode of the mount namespace; 0: the tool's
	FSType [32]byte  `kc:"fstype"`
	Source [128]byte `kc:"source"`
	Point  [256]byte `kc:"point"`
	Root   [64]byte  `kc:"root"` // what of the file system is mounted: not "/" for a bind mount
}

// LinuxDevice is a block device.
type LinuxDevice struct {
	Dev  uint64   `kc:"dev"` // major<<32 | minor
	Name [32]byte `kc:"name"`
}

// Bits of LinuxFUSE.Flags.
const (
	FUSESent    = 1 << 0 // the server has read the request; else it lies in the queue
	FUSEForeign = 1 << 1 // tid is a number of another pid namespace than the recorded
	FUSESums    = 1 << 2 // no request: waiting is what /sys/fs/fuse/connections says, tid is 0
)

// LinuxFUSE is a request that a FUSE server has not answered, or a connection's sum.
type LinuxFUSE struct {
	Dev     uint64 `kc:"dev"`    // st_dev of the file system's files: major<<32 | minor
	Conn    uint64 `kc:"conn"`   // the connection, Object of the server's LinuxEnd; 0: not known
	Unique  uint64 `kc:"unique"` // the request's number
	Node    uint64 `kc:"node"`   // what it is about
	Flags   uint32 `kc:"flags"`
	Tid     uint32 `kc:"tid"`     // the thread that asks; 0: nobody waits for the answer
	Opcode  uint32 `kc:"opcode"`  // FUSE_*
	Waiting uint32 `kc:"waiting"` // FUSESums: how many requests are unanswered
}

// Sources of LinuxFilesTaken.
const (
	FilesHasTable   = 1 << 0 // the window followed descriptors
	FilesHasUnix    = 1 << 1 // and knows the ends of unix sockets
	FilesHasEpoll   = 1 << 2 // and the sets of epolls
	FilesHasTTY     = 1 << 3 // and terminals
	FilesHasPass    = 1 << 4 // a BPF pass over all open files was made after the release
	FilesHasProc    = 1 << 5 // no BPF pass: /proc told what it could
	FilesHasLocks   = 1 << 6 // /proc/locks was read, which is done only if a thread waits for a lock
	FilesHasMounts  = 1 << 7 // mounts were read
	FilesHasDevices = 1 << 8 // names of block devices were read
	FilesHasFUSE    = 1 << 9 // requests of FUSE were read
)

// Bits of LinuxFilesTaken.Flags: what was not done.
const (
	FilesTimeUp    = 1 << 0 // its time was up before all open files were looked at
	FilesTooMany   = 1 << 1 // more ends than the file has
	FilesNoLocks   = 1 << 2 // a thread waits for a lock, and /proc/locks could not be read, or not in time
	FilesNoMounts  = 1 << 3 // mounts could not be read, or not in time
	FilesNoPass    = 1 << 4 // the pass failed; a warning says why
	FilesHung      = 1 << 5 // a read of /proc or /sys did not end in time
	FilesTooWanted = 1 << 6 // threads wait at more objects than the pass looks for
)

// LinuxFilesTaken sums up the records of open files.
type LinuxFilesTaken struct {
	Sources   uint32 `kc:"sources"` // FilesHas*
	Flags     uint32 `kc:"flags"`   // Files*
	Threads   uint32 `kc:"threads"` // with LinuxFile
	Files     uint32 `kc:"files"`
	Sockets   uint32 `kc:"sockets"`
	More      uint32 `kc:"more"`   // descriptors of calls beyond the first 16
	Closed    uint32 `kc:"closed"` // FileClosed
	Unread    uint32 `kc:"unread"` // FileUnread or FileNoSet
	Opaque    uint32 `kc:"opaque"` // FileOpaque
	Moved     uint32 `kc:"moved"`  // threads with FileMoved
	Wanted    uint32 `kc:"wanted"` // objects that the pass looked for
	Ends      uint32 `kc:"ends"`   // that it found
	Looked    uint64 `kc:"looked"` // descriptors that it looked at
	PassNs    uint64 `kc:"pass_ns"`
	TotalNs   uint64 `kc:"total_ns"`  // of all that was read after the release for this page
	DelayNs   uint64 `kc:"delay_ns"`  // from the release to its beginning
	Unsettled uint32 `kc:"unsettled"` // processes whose descriptors could not be looked at (without BPF)
	Processes uint32 `kc:"processes"` // without BPF: whose descriptors were
}
