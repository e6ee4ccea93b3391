// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// KCData as BPF writes it. The records mirror kcdata/linux.go and the Apple
// structs of package kcdata field by field; TestRecordLayout holds this
// object's BTF against the Go spec table.
#ifndef STACKSHOT_KCDATA_H
#define STACKSHOT_KCDATA_H

enum kc_type {
	KC_CONTAINER_BEGIN = 0x13,
	KC_CONTAINER_END = 0x14,
	KC_ARRAY_PAD0 = 0x20,
	KC_TASK = 0x903,
	KC_THREAD = 0x904,
	KC_TASK_SNAPSHOT = 0x905,
	KC_THREAD_SNAPSHOT = 0x906,
	KC_THREAD_NAME = 0x909,
	KC_KERN_STACKLR64 = 0x914,
	KC_CPU_TIMES = 0x919,
	KC_LATENCY_THREAD = 0x92d,
	KC_TRANS_TASK_SNAPSHOT = 0x930,
	KC_TRANS_TASK = 0x931,
	KC_LX_TASK = 0x4C40,
	KC_LX_TASK_MEMORY = 0x4C41,
	KC_LX_TASK_NS = 0x4C42,
	KC_LX_TASK_EXE = 0x4C43,
	KC_LX_MAPPING = 0x4C44,
	KC_LX_MAP_NAME = 0x4C4C,
	KC_LX_MAP_WALK = 0x4C4D,
	KC_LX_CMDLINE_SEEN = 0x4C4E,
	KC_LX_THREAD = 0x4C80,
	KC_LX_SYSCALL = 0x4C81,
	KC_LX_THREAD_IO = 0x4C82,
	KC_LX_DELAYS = 0x4C83,
	KC_LX_SIGNALS = 0x4C84,
	KC_LX_THREAD_NS = 0x4C85,
	KC_LX_REGISTERS = 0x4C87,
	KC_LX_USER_WALK = 0x4C89,
	KC_LX_USER_CHAIN = 0x4C8A,
	KC_LX_USER_BYTES = 0x4C8B,
	KC_LX_WAIT = 0x4CC0,
	KC_LX_FUTEX = 0x4CC1,
	KC_LX_FILE = 0x4CC2,
	KC_LX_SOCKET = 0x4CC3,
};

// flags of ths_ss_flags / ts_ss_flags / ths_state that we set
enum ss_flags { SS_USER64 = 0x1, SS_KERNEL64 = 0x2, TS_TERMINATED = 0x8 };
enum ths_flags { THS_ONCORE = 0x800, THS_MAIN = 0x2000, THS_TRUNCKERN = 0x4000 };
enum ths_state { TH_WAIT = 0x1, TH_SUSP = 0x2, TH_RUN = 0x4, TH_UNINT = 0x8, TH_TERMINATE = 0x10, TH_IDLE = 0x80 };

// present bits, kcdata/linux.go
enum task_present {
	TASK_HAS_IDS = 1 << 0, TASK_HAS_TIMES = 1 << 1, TASK_HAS_SIGNAL = 1 << 2, TASK_HAS_OOM = 1 << 3,
	TASK_HAS_CGROUP = 1 << 4, TASK_HAS_GROUP_IO = 1 << 5, TASK_HAS_FAULTS = 1 << 6,
	TASK_HAS_THREAD_COUNT = 1 << 7,
	TASK_IS_KERNEL = 1 << 8, TASK_IN_EXEC = 1 << 9, TASK_CORE_DUMPING = 1 << 10, TASK_IS_SELF = 1 << 11, TASK_HAS_MONOTONIC = 1 << 12,
};
enum thread_present {
	THREAD_HAS_TIMES = 1 << 0, THREAD_HAS_RUNTIME = 1 << 1, THREAD_HAS_SCHED_INFO = 1 << 2,
	THREAD_HAS_SWITCHES = 1 << 3, THREAD_HAS_FAULTS = 1 << 4, THREAD_HAS_PRIO = 1 << 5,
	THREAD_HAS_START = 1 << 6, THREAD_HAS_FS_BASE = 1 << 7, THREAD_HAS_STACK = 1 << 8,
	THREAD_HAS_EXIT_CODE = 1 << 9, THREAD_HAS_ONCPU = 1 << 10, THREAD_TRUNCATED = 1 << 11,
	THREAD_NEVER_RAN = 1 << 12, THREAD_USER_MODE = 1 << 13, THREAD_IS_IDLE = 1 << 14, THREAD_IS_SELF = 1 << 15,
	THREAD_HAS_MONOTONIC = 1 << 16, THREAD_DISPLACED = 1 << 17, THREAD_COMPAT_CALL = 1 << 18,
};

enum mapping_flags { MAPPING_DELETED = 1 << 0, MAPPING_VDSO = 1 << 1, MAPPING_ANON = 1 << 2, MAPPING_IN_WINDOW = 1 << 3, MAPPING_UNREAD = 1 << 5 };
enum map_walk_flags { MAP_WALK_WRITER = 1 << 0, MAP_WALK_WAITERS = 1 << 1, MAP_WALK_ASKED = 1 << 2, MAP_WALK_WHOLE = 1 << 3 };
// flags of linux_user_walk that the window sets, kcdata/linux_user.go
enum user_flags {
	USER_WALKED = 1 << 0, USER_EXACT = 1 << 1, USER_TRUNCATED = 1 << 2, USER_PAGED_OUT = 1 << 3,
	USER_REFUSED = 1 << 4, USER_OUTSIDE = 1 << 5, USER_COMPAT = 1 << 6, USER_NO_MEMORY = 1 << 7, USER_NO_PAGE = 1 << 16,
};

// linux_wait and the part of linux_futex that the window writes, kcdata/linux_wait.go
enum wait_flags {
	WAIT_FIELD = 1 << 0, WAIT_SCAN = 1 << 1, WAIT_PI = 1 << 2, WAIT_OWNED = 1 << 3, WAIT_READERS = 1 << 4,
	WAIT_LAST_HOLDER = 1 << 5, WAIT_FREE = 1 << 6, WAIT_BAD_OWNER = 1 << 7, WAIT_IO = 1 << 8, WAIT_TRACED = 1 << 9,
	WAIT_VFORK = 1 << 10, WAIT_FROZEN = 1 << 11, WAIT_SCANNED = 1 << 12, WAIT_FEW_FUTEXES = 1 << 13, WAIT_FEW_FILES = 1 << 14,
};
enum lock_kind { LOCK_MUTEX = 1, LOCK_SEMAPHORE = 2, LOCK_RWSEM_READ = 3, LOCK_RWSEM_WRITE = 4, LOCK_RT_MUTEX = 5 };
enum scan_end { SCAN_FOUND = 1, SCAN_NO_PATH = 2, SCAN_NO_RING = 3, SCAN_NO_LOCK = 4, SCAN_TOO_LONG = 5, SCAN_UNREAD = 6 };
enum futex_flags {
	FUTEX_PRIVATE = 1 << 0, FUTEX_PI = 1 << 1, FUTEX_TIMED = 1 << 2, FUTEX_ABSENT = 1 << 3, FUTEX_REFUSED = 1 << 4,
	FUTEX_COMPAT = 1 << 5, FUTEX_WAITV = 1 << 6,
};

// linux_file and linux_socket, kcdata/linux_file.go
enum file_kind {
	FILE_OTHER = 0, FILE_REGULAR = 1, FILE_DIRECTORY = 2, FILE_BLOCK = 3, FILE_CHAR = 4, FILE_PIPE = 5, FILE_FIFO = 6, FILE_SOCKET = 7,
	FILE_TERMINAL = 8, FILE_PT_MASTER = 9, FILE_EPOLL = 10, FILE_EVENTFD = 11, FILE_TIMERFD = 12, FILE_SIGNALFD = 13, FILE_PIDFD = 14,
	FILE_INOTIFY = 15, FILE_FANOTIFY = 16, FILE_USERFAULTFD = 17, FILE_FUSE = 18, FILE_IO_URING = 19,
};
enum file_op { FILE_OP_READ = 1, FILE_OP_WRITE = 2, FILE_OP_ACCEPT = 3, FILE_OP_CONNECT = 4, FILE_OP_POSIX = 8, FILE_OP_OFD = 9 };
enum file_flags {
	FILE_TO_READ = 1 << 0, FILE_TO_WRITE = 1 << 1, FILE_POLLED = 1 << 2, FILE_TIMED = 1 << 3, FILE_CLOSED = 1 << 4, FILE_UNREAD = 1 << 5,
	FILE_NO_SET = 1 << 6, FILE_EMPTY = 1 << 7, FILE_FULL = 1 << 8, FILE_OPAQUE = 1 << 9, FILE_PEER_KNOWN = 1 << 10,
};
enum socket_flags {
	SOCKET_LISTENS = 1 << 0, SOCKET_SHUT_IN = 1 << 1, SOCKET_SHUT_OUT = 1 << 2, SOCKET_CONNECTED = 1 << 3, SOCKET_V4 = 1 << 4,
	SOCKET_PEER_CRED = 1 << 5, SOCKET_NAMED = 1 << 6, SOCKET_PEER_NAMED = 1 << 7,
};

struct kc_header { u32 type, size; u64 flags; };
struct kc_container { struct kc_header h; u32 type, pad[3]; };

struct thread_snapshot {
	u64 ths_thread_id, ths_wait_event, ths_continuation, ths_total_syscalls, ths_voucher_identifier,
		ths_dqserialnum, ths_user_time, ths_sys_time, ths_ss_flags, ths_last_run_time,
		ths_last_made_runnable_time;
	u32 ths_state, ths_sched_flags;
	s16 ths_base_priority, ths_sched_priority;
	u8 ths_eqos, ths_rqos, ths_rqos_override, ths_io_tier;
	u64 ths_thread_t, ths_requested_policy, ths_effective_policy;
};

struct cpu_times { u64 user_usec, system_usec, runnable_usec; };

struct task_snapshot {
	u64 ts_unique_pid, ts_ss_flags, ts_user_time_in_terminated_threads, ts_system_time_in_terminated_threads,
		ts_p_start_sec, ts_task_size, ts_max_resident_size;
	u32 ts_suspend_count, ts_faults, ts_pageins, ts_cow_faults, ts_was_throttled, ts_did_throttle, ts_latency_qos;
	s32 ts_pid;
	char ts_p_comm[32];
};

// 60 bytes, 4-aligned like the wire form.
struct transitioning_task_snapshot {
	u64 tts_unique_pid, tts_ss_flags, tts_transition_type;
	s32 tts_pid;
	char tts_p_comm[32];
} __attribute__((packed, aligned(4)));

struct linux_task {
	u64 present;
	u32 tgid, ppid, pgid, sid, uid, gid, euid, egid, nr_threads;
	s32 live, exit_code;
	u32 signal_flags;
	s32 oom_score_adj;
	u32 reserved;
	u64 start_time, start_boottime, cgroup_id, dead_utime, dead_stime, dead_min_flt, dead_maj_flt,
		dead_read_bytes, dead_write_bytes;
};

struct linux_task_memory {
	u64 rss_file, rss_anon, rss_shmem, swap, hiwater_rss, hiwater_vm, total_vm, locked_vm, pinned_vm, data_vm,
		exec_vm, stack_vm, pgtables, map_count, start_stack, end_code, end_data;
};

struct linux_task_ns { u32 mnt, pid, net, uts, ipc, cgroup, time, user; };

struct linux_task_exe { u64 ino; u32 dev, refused; char name[64]; };

struct linux_mapping {
	u64 start, end, offset, inode;
	u32 dev_major, dev_minor, path, flags, build_id_len;
	u8 build_id[20];
};

struct linux_map_walk { u32 flags, entries, leaves, torn, found, written; u64 walk_ns; u32 refused, reserved; };

struct linux_thread {
	u64 present;
	u32 tid, tgid, state, exit_state, flags, cpu, on_cpu, policy;
	s32 prio, static_prio, normal_prio;
	u32 rt_priority;
	s32 nice, kstack_err;
	u32 kstack_depth;
	s32 exit_code;
	u64 start_time, start_boottime, utime, stime, sum_exec_runtime, run_delay, pcount, last_arrival, last_queued,
		exec_start, nvcsw, nivcsw, min_flt, maj_flt, fs_base, displaced_ns;
	u32 kstack_skipped, reserved; // kstack_skipped: written at collation
};

struct linux_syscall { s64 nr; u64 ip, sp, args[6]; };

struct linux_thread_io {
	u64 rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled_write_bytes;
};

struct linux_delays {
	u64 blkio_ns, swapin_ns, freepages_ns, thrashing_ns, compact_ns, wpcopy_ns;
	u32 blkio, swapin, freepages, thrashing, compact, wpcopy;
};

struct linux_signals { u64 pending, shared_pending, blocked; };

struct linux_thread_ns { u32 inode, tid; };

struct linux_user_walk {
	u32 flags, links, bytes, absent, refused, frames;
	u64 stack_end;
	u32 walk_ns, translations;
	u64 stop_addr;
};

struct linux_user_link { u64 fp, pc; };

struct linux_wait {
	u32 flags, kind;
	u64 lock;
	u32 owner_tid, owner_tgid;
	u64 owner_start;
	u32 peer_tid, peer_tgid;
	u64 peer_start;
	u32 scan, hops, files, reserved;
};

// From object on: written at collation.
struct linux_futex {
	u64 addr, place;
	u32 flags, op, expected, have;
	u8 around[40];
	u32 object, owner_tid, owner_tgid, reserved;
	u64 owner_start;
};

struct linux_file {
	u32 flags, op, kind;
	s32 fd;
	u64 object, peer, file, inode, dev, rdev, magic;
	u32 mode, o_flags, events, readers, writers, reserved;
	u64 bytes, room, lock_start, lock_len;
	u32 lock_how, netns;
	u8 name[24];
};

struct linux_socket {
	u32 flags;
	s32 fd;
	u16 family, kind, protocol, state, local_port, peer_port;
	u32 netns;
	u8 local[16], remote[16];
	u64 inode, peer_inode, bytes_in, bytes_out;
	u32 backlog, backlog_max, peer_tgid, error;
};

struct latency_thread {
	u64 thread_id, cur_thsnap1_latency, dispatch_serial_latency, dispatch_label_latency, cur_thsnap2_latency,
		thread_name_latency, sur_times_latency, user_stack_latency, kernel_stack_latency, misc_latency;
};

// Names every record and constant once, so that the object's type information
// holds them for TestRecordLayout; nothing reads or writes it.
struct all_records {
	struct kc_header header;
	struct kc_container container;
	struct thread_snapshot thread_snapshot;
	struct cpu_times cpu_times;
	struct task_snapshot task_snapshot;
	struct transitioning_task_snapshot transitioning_task_snapshot;
	struct linux_task linux_task;
	struct linux_task_memory linux_task_memory;
	struct linux_task_ns linux_task_ns;
	struct linux_task_exe linux_task_exe;
	struct linux_mapping linux_mapping;
	struct linux_map_walk linux_map_walk;
	struct linux_thread linux_thread;
	struct linux_syscall linux_syscall;
	struct linux_thread_io linux_thread_io;
	struct linux_delays linux_delays;
	struct linux_signals linux_signals;
	struct linux_thread_ns linux_thread_ns;
	struct linux_user_walk linux_user_walk;
	struct linux_user_link linux_user_link;
	struct linux_wait linux_wait;
	struct linux_futex linux_futex;
	struct linux_file linux_file;
	struct linux_socket linux_socket;
	struct latency_thread latency_thread;
	enum kc_type kc_type;
	enum ss_flags ss_flags;
	enum ths_flags ths_flags;
	enum ths_state ths_state;
	enum task_present task_present;
	enum thread_present thread_present;
	enum mapping_flags mapping_flags;
	enum map_walk_flags map_walk_flags;
	enum user_flags user_flags;
	enum wait_flags wait_flags;
	enum lock_kind lock_kind;
	enum scan_end scan_end;
	enum futex_flags futex_flags;
	enum file_kind file_kind;
	enum file_op file_op;
	enum file_flags file_flags;
	enum socket_flags socket_flags;
};
const struct all_records *unused_records __attribute__((unused));

// KC_PAD: bytes that round a payload of n bytes up to the item grid.
#define KC_PAD(n) ((16 - ((n) & 15)) & 15)

// KC_ITEM declares the member of a record that is one item: header, payload,
// padding. kc_item fills the header and clears payload and padding; kc_item_full
// is for a payload of which the caller writes every byte: it clears the padding.
#define KC_ITEM(T, name)                                    \
	struct {                                                \
		struct kc_header h;                                 \
		union { T v; u8 room[sizeof(T) + KC_PAD(sizeof(T))]; }; \
	} name

#define kc_item(it, t)                                                      \
	do {                                                                    \
		__builtin_memset(&(it)->v, 0, sizeof((it)->v));                     \
		kc_item_full(it, t);                                                \
	} while (0)

#define kc_item_full(it, t)                                                 \
	do {                                                                    \
		__builtin_memset((it)->room + sizeof((it)->v), 0, KC_PAD(sizeof((it)->v))); \
		(it)->h.type = (t);                                                 \
		(it)->h.size = sizeof((it)->room);                                  \
		(it)->h.flags = 0x80 | (sizeof((it)->room) - sizeof((it)->v));      \
	} while (0)

// kc_bytes fills the header of an item that is n bytes of text or data: an array of
// one-byte records, as its spec has it.
static __always_inline void kc_bytes(struct kc_header *h, u32 type, u64 n)
{
	u64 pad = KC_PAD(n);
	h->type = KC_ARRAY_PAD0 | pad;
	h->size = n + pad;
	h->flags = ((u64)type << 32) | n;
}

// mark sets bits in a record at once. Kept in a register until later, bits that
// depend on the task would give the verifier a separate path for each.
#define mark(word, bits) (*(volatile __typeof__(word) *)&(word) |= (bits))

static __always_inline void kc_begin(struct kc_container *c, u32 type, u64 id)
{
	c->h.type = KC_CONTAINER_BEGIN;
	c->h.size = 16;
	c->h.flags = id;
	c->type = type;
	c->pad[0] = c->pad[1] = c->pad[2] = 0;
}

static __always_inline void kc_end(struct kc_header *h, u64 id)
{
	h->type = KC_CONTAINER_END;
	h->size = 0;
	h->flags = id;
}

#endif
