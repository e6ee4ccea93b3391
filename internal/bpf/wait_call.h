// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The open files that a sleeping thread waits at: what its system call says of them. The
// loader gives a table of the calls that have a descriptor (calls.go), and the places
// of the kernel's fields (files.go): some of their types are in modules, and some have
// other names in other releases. wait_file.h takes one descriptor after another,
// wait_object.h what each leads to, wait_socket.h more of sockets.
#ifndef STACKSHOT_WAIT_CALL_H
#define STACKSHOT_WAIT_CALL_H

enum {
	FILE_CALLS = 512,  // numbers of calls of one ABI
	WAIT_FILES = 16,   // descriptors of one call that are recorded; Go's MaxFiles
	FILE_COUNTED = 65536,
	POLL_LOOKED = 256, // entries of a poll that are looked at; those behind count as they are
	SELECT_LOOKED = 2048, // bits of select's sets; a set of 65,536 took half a millisecond a thread
	EPOLL_LOOKED = 32, // of an epoll's set: each is a line of memory that nobody has read for long
	QUEUE_LOOKED = 64, // messages of a socket whose bytes are added up
	PIPE_LOOKED = 256, // buffers of a pipe likewise
	SET_LOOKED = 16,   // messages or buffers of each, if it is one of a set: a pipe has 16 mostly
	FILE_HALVES = 5,   // words of four bytes of user memory that are read together
};

// Where a call has its descriptors.
enum file_way {
	WAY_NONE, WAY_ONE, WAY_TWO, WAY_SPLICE, WAY_POLL, WAY_SELECT, WAY_EPOLL, WAY_WATCHED, WAY_FLOCK, WAY_FCNTL, WAY_SOCKETCALL, WAY_ABSENT,
};
// Of a call's timeout: a pointer that may be 0, or milliseconds that may be negative.
enum { TIME_POINTER = 1 << 3, TIME_MS = 1 << 4 };

struct file_call { u8 op, way, flags, time; }; // time: bits 0-2 are the argument

// Set by the loader before the programs are loaded; constant after.
const volatile u32 cfg_files; // record them
const volatile struct file_call cfg_calls[2 * FILE_CALLS]; // native calls, then those of the 32-bit ABI
const volatile struct file_call cfg_socketcalls[32]; // by the first argument of socketcall(2)

// Places of fields, by enum file_place; Go's placeNames has the same order.
enum { NOWHERE = ~0u };
enum file_place {
	P_FILES_FDT, P_FDT_MAX, P_FDT_FD, P_FDT_EXEC, P_FDT_OPEN,
	P_FILE_INODE, P_FILE_PRIVATE, P_FILE_FLAGS, P_FILE_DENTRY, P_DENTRY_NAME,
	P_INODE_MODE, P_INODE_SB, P_INODE_INO, P_INODE_RDEV, P_SB_DEV, P_SB_MAGIC,
	P_PIPE_HEAD, P_PIPE_TAIL, P_PIPE_USAGE, P_PIPE_RING, P_PIPE_READERS, P_PIPE_WRITERS, P_PIPE_BUFS, P_BUF_LEN, P_BUF_SIZE,
	P_SOCKET_SK, P_SOCKET_INODE,
	P_SK_DADDR, P_SK_RCV_SADDR, P_SK_DPORT, P_SK_NUM, P_SK_FAMILY, P_SK_STATE, P_SK_NET, P_NET_INUM, P_SK_V6_DADDR, P_SK_V6_RCV_SADDR,
	P_SK_QUEUE, P_SK_QLEN, P_SK_RCVTIMEO, P_SK_SNDTIMEO, P_SK_ERR, P_SK_SOCKET, P_SK_WMEM, P_SK_PROTOCOL, P_SK_TYPE, P_SK_SHUTDOWN,
	P_SK_BACKLOG, P_SK_BACKLOG_MAX, P_SK_PEER_PID, P_SKB_LEN, P_SKB_CB,
	P_TCP_COPIED, P_TCP_RCV_NXT, P_TCP_WRITE_SEQ, P_TCP_SND_UNA,
	P_UNIX_PEER, P_UNIX_ADDR, P_UNIX_CONSUMED,
	P_TFP_TTY, P_TTY_LINK, P_TTY_DISC, P_TTY_LFLAG, P_TTY_LINE, P_NTTY_HEAD, P_NTTY_CANON, P_NTTY_TAIL,
	P_EVENTFD_COUNT, P_TIMERFD_TICKS,
	P_EP_ROOT, P_EPI_NODE, P_EPI_FILE, P_EPI_FD, P_EPI_EVENTS, P_NODE_LEFT, P_NODE_RIGHT,
	P_FUSE_DEV_CONN, P_FUSE_DEV_CHAN, P_FUSE_CHAN_CONN,
	FILE_PLACES,
};
const volatile u32 cfg_place[FILE_PLACES];

// Names the enums once, for TestPlacesOfCAndGo; nothing reads or writes it.
struct all_places { enum file_place place; enum file_way way; };
const struct all_places *unused_places __attribute__((unused));

#define placed(place) (cfg_place[place] != NOWHERE)
#define field_at(at, place) kernel_word((at) + cfg_place[place])

// What is to be done next. Each is a step of one loop, for the verifier allows eight functions
// above one another, and spends much on each loop.
enum file_phase {
	PHASE_NEXT, PHASE_FILE, PHASE_ANON, PHASE_PIPE, PHASE_SOCKET, PHASE_QUEUES, PHASE_UNIX, PHASE_PEER, PHASE_CHAR, PHASE_TTY, PHASE_FUSE,
	PHASE_READ, PHASE_POLLED, PHASE_SETS, PHASE_LOCK, PHASE_SOCKETCALL, PHASE_SUM_PIPE, PHASE_SUM_QUEUE, PHASE_END,
};

// The state of one thread's files; a part of struct wait_work, for the same reason.
struct file_work {
	struct linux_file one; // at hand
	struct linux_socket sock;
	u64 arg[8];            // of the call
	u64 op, way, flags, ends; // ends: what the call's first descriptor is for (FILE_TO_*)
	u64 compat, level;
	u64 table, max_fds, odd;  // the table of descriptors; odd: it lies in vmalloc memory and is whole
	u64 file, private, inode, dentry, sk; // of the one at hand
	u64 n, sockets, count, turn; // records, and descriptors in all; what was taken so far
	u64 phase, cursor, stop, left; // a sum under way
	u64 bits[3], base;     // of select; base: of a pipe its mask
	u64 node, from;        // of an epoll's tree
	u64 fd, events, found; // what the next descriptor is, and if there is one
	u64 lock_how, lock_start, lock_len;
	u64 got, asked, then, miss; // of what is read of user memory
	u64 va[FILE_HALVES], half[FILE_HALVES];
	struct { struct kc_header h; struct linux_file v[WAIT_FILES]; } files;
	struct { struct kc_header h; struct linux_socket v[WAIT_FILES]; u64 pad; } socks;
};

static __always_inline u64 sum_most(struct file_work *f, u64 most)
{
	return f->flags & FILE_POLLED ? SET_LOOKED : most;
}

#endif
