// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What the pass over all open files is told and what it answers. Go's side: ends_keys.go,
// ends_look.go, ends_parse.go and kcdata/linux_file.go; a test holds them together.
#ifndef STACKSHOT_ENDS_TYPES_H
#define STACKSHOT_ENDS_TYPES_H

const volatile u32 cfg_level; // depth of the recorded pid namespace

// One for each pass, written by the loader; the answers behind `most` by the programs.
enum ends_asks { ASK_LOCKS = 1 << 0, ASK_INET = 1 << 1, ASK_USERFAULTFD = 1 << 2, ASK_PEERS = 1 << 3, ASK_UNIX = 1 << 4, ASK_ROOM = 1 << 5 };
struct ends_ask {
	u64 deadline; // CLOCK_MONOTONIC
	u32 flags, most;
	u64 looked, crowded;
	u32 found, time_up, too_many, tasks;
};

// What is wanted, by one of these: the rest is 0. BY_SERVER is of the program's own making.
enum end_by { BY_OBJECT = 1, BY_PEER, BY_FILE, BY_PAIR, BY_PORT, BY_SERVER, BY_ROOM };
struct end_key {
	u64 local[2], remote[2]; // BY_OBJECT, BY_PEER, BY_ROOM: local[0]; BY_FILE: device and inode
	u32 netns, by;
	u16 local_port, peer_port;
	u16 v4, sort; // v4: the addresses are IPv4
};

// Ends of one key are kept up to ENDS_KEPT that only read, and as many others: the readers of
// a pipe must not leave its writers without room.
#define ENDS_KEPT 64
struct end_wanted { u32 index, readers, others, unused; };

struct thread_key { u64 start; u32 tid, unused; };
enum thread_flags { THREAD_SEEN = 1 << 0, THREAD_STILL = 1 << 1, THREAD_CATCHES = 1 << 2 };
struct thread_asked { u64 switches, sends; u32 flags, unused; };

struct linux_end {
	u32 flags, kind;
	u64 object, peer, of, file, inode, dev, start;
	u32 tgid;
	s32 fd;
	u32 refs, backlog;
	u64 bytes_in;
	u16 family, sort, local_port, peer_port;
	u32 netns, lock_kind;
	u8 local[16], remote[16];
};

struct linux_fuse {
	u64 dev, conn, unique, node;
	u32 flags, tid, opcode, waiting;
};

enum end_flags {
	END_READS = 1 << 0, END_WRITES = 1 << 1, END_LISTENS = 1 << 2, END_LOCKS = 1 << 3, END_PAIR = 1 << 4,
	END_SAME = 1 << 5, END_PEER = 1 << 6, END_ACCEPTS = 1 << 7, END_SERVES = 1 << 8,
	END_ROOM = 1 << 9,
};
enum file_lock_kind { FILE_LOCK_FLOCK = 1, FILE_LOCK_POSIX, FILE_LOCK_OFD };
enum fuse_flags { FUSE_SENT = 1 << 0, FUSE_FOREIGN = 1 << 1 };

// What the pass writes, one after the other.
enum outs { OUT_END = 1, OUT_FUSE = 2 };
#define NO_INDEX (~0u)
struct end_out { u32 what, index; struct linux_end v; };
struct fuse_out { u32 what, unused; struct linux_fuse v; };

// The file at work.
struct ends_work {
	struct file_seen s;
	struct end_key key;
	struct end_out out;
	struct fuse_out fuse;
	u64 file, files, level_ns; // addresses: of the file, its process's files_struct, the recorded pid_namespace
	u64 at, head, before, conn; // of a list that is walked
	u64 bytes, lists;
	u32 state, fuse_flags, requests, unused;
};

enum { MAP_HASH = 1, NO_PREALLOC = 1, NO_EXIST = 1 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ends_ask);
} asks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ends_work);
} works SEC(".maps");

// The loader sets max_entries of the first two.
struct {
	__uint(type, MAP_HASH);
	__uint(map_flags, NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct end_key);
	__type(value, struct end_wanted);
} wanted SEC(".maps");

struct {
	__uint(type, MAP_HASH);
	__uint(map_flags, NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct thread_key);
	__type(value, struct thread_asked);
} threads SEC(".maps");

// FUSE connections and devices whose requests are written already: a file may be open in
// many processes.
struct {
	__uint(type, MAP_HASH);
	__uint(map_flags, NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u32);
} served SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct bpf_iter__task_file { struct bpf_iter_meta *meta; struct task_struct *task; u32 fd; struct file *file; };
struct seq_file___e { unsigned long size, count; };
struct mm_struct___e { void *owner; };
struct task_struct___e { void *group_leader, *thread_pid, *files, *sighand; };
struct userfaultfd_ctx___e { void *mm; };
struct file___count { atomic64_t f_count; };
struct file___ref { atomic64_t f_ref; }; // file_ref_t: a struct of one atomic_long_t
#pragma clang attribute pop

#endif
