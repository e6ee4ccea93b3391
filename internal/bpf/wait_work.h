// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What a thread waits for: the state of one thread's look-up, and how pointers are
// followed on the way. wait_lock.h has what the task itself says, wait_scan.h the locks
// that only its kernel stack names, wait_owner.h the owners, wait_futex.h the words in
// user memory; record_wait.h writes the records.
#ifndef STACKSHOT_WAIT_WORK_H
#define STACKSHOT_WAIT_WORK_H

enum {
	SLOW_BITS = 5,
	SLOW_BOUNDS = 1 << SLOW_BITS, // of address ranges of slow paths of locks
	SCAN_WORDS = 128,  // of a kernel stack
	SCAN_HOPS = 256,   // of a ring of waiters
	SCAN_LOCKS = 8,    // words of a stack that may be the lock
	SCAN_BEHIND = 40,  // words behind the waiter record that may still be of its function
	WAIT_MEMO = 512,   // waiters whose lock is known
	WAIT_FUTEXES = 8,  // words of one call; Go's MaxFutexes
	FUTEX_BEFORE = 16, // bytes before a word
	FUTEX_BYTES = 40,  // and around it, in all
	FUTEX_LIST = 24,   // struct futex_waitv
};

// Set by the loader before the programs are loaded; constant after.
const volatile u32 cfg_wait_ring; // the kernel's locks have no list head: they point to their first waiter
const volatile u32 cfg_wait_mutex; // blocked_on leads to the mutex
const volatile u64 cfg_wait_signed; // bits of a return address that a signature may take (arm64)
const volatile u64 cfg_slow_start, cfg_slow_len; // what all slow paths lie in; length 0: no scan
// From each address on, up to the next, text is of the slow path of this kind (enum
// lock_kind) or of none (0). Ascending; unused ones are beyond every address.
struct slow_bound { u64 at, kind; };
const volatile struct slow_bound cfg_slow[SLOW_BOUNDS];
const volatile u64 cfg_wait_list[8]; // by enum lock_kind: where a lock has its list head, or the pointer to its first waiter

// A waiter whose lock is known: its place in the ring, the first counts 1. off: of
// the list in the lock.
struct wait_memo { u64 node, lock; u32 hops, off; };

struct wait_who { u32 tid, tgid; u64 start; };

// The state of one look-up. Only the programs on this CPU write it. It is in map memory
// for the reason that struct user_work is: the verifier does not follow values there.
struct wait_work {
	struct user_memory mem;
	struct linux_wait v;
	struct wait_who who;
	u64 word, at, peer;    // what a function returns by memory; pointers as numbers
	// the scan
	u64 task, sp, top;     // the task; its stack from where it sleeps up to the saved user registers
	u64 stack_at, stack_size;
	u64 i, words, path;    // the next word; how many were copied; the one that points into a slow path
	u64 rest;              // as many were not yet copied
	u64 own, node;         // its waiter record; where in the ring the walk is
	u32 slow, hops, phase, candidates; // enum lock_kind of the slow path met last; SCAN_*
	u64 lock[SCAN_LOCKS], first[SCAN_LOCKS];
	u64 stack[SCAN_WORDS];
	// the futexes
	u64 regs;              // saved user registers
	u64 va, upto, copied, have, flags; // bytes at hand: the next, their end, how many; words that were read; FUTEX_*
	u64 op, expected, place;
	u32 next, futexes, listing, miss;
	u64 list[WAIT_FUTEXES * FUTEX_LIST / 8];
	u8 bytes[512];         // of which 256 are used
	struct { struct kc_header h; struct linux_futex v[WAIT_FUTEXES]; } futex;
	struct file_work f;
	struct wait_memo memo[WAIT_MEMO];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wait_work);
} wait_works SEC(".maps");

static __always_inline struct wait_work *my_wait_work(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&wait_works, &zero);
}

// linked says that a word can be a link of a ring in kernel memory. By the top byte:
// with five levels of tables the kernel's addresses begin with 0xff0 or above.
static __always_inline bool linked(u64 at)
{
#if defined(__TARGET_ARCH_x86)
	return at >> 56 == 0xff && !(at & 7);
#else
	return kernel_half(at) && !(at & 7);
#endif
}

// memory_at returns where len bytes that a pointer leads to may be read, 0 if nowhere:
// they must be ordinary memory (ram.h). If the kernel's map of all memory is not known,
// kernel addresses are taken as they are.
static __noinline u64 memory_at(struct wait_work *w, u64 at, u64 len)
{
	volatile u64 *word = &w->word; // where the verifier forgets which
	*word = 0;
	if (!linked(at))
		return 0;
	if (!cfg_dm_base)
		*word = at;
	else
		*word = ordinary(&w->mem.ram, at, len);
	return *word;
}

#define task_field(task, field) kernel_word((task) + bpf_core_field_offset(((struct task_struct *)0)->field))

// number_in is tid_in for a task that is known by its address alone.
static __always_inline u32 number_in(struct wait_work *w, u64 task, u32 level)
{
	u64 pid = memory_at(w, task_field(task, thread_pid), bpf_core_type_size(struct pid));
	if (!pid || (u32)kernel_word(pid + bpf_core_field_offset(((struct pid *)0)->level)) < level)
		return 0;
	u64 up = pid + bpf_core_field_offset(((struct pid *)0)->numbers) + ((level * bpf_core_type_size(struct upid)) & 0xfff);
	return kernel_word(up + bpf_core_field_offset(struct upid, nr));
}

// who_is fills w->who from the task at this address. False: that is no ordinary memory. A
// task that has exited since leaves other bytes there; whoever reads the file believes
// the numbers only if it has a thread with this start.
static __noinline bool who_is(struct wait_work *w, u64 at, u32 level)
{
	volatile u64 *seen = &w->at;
	*seen = memory_at(w, at, bpf_core_type_size(struct task_struct));
	if (!*seen)
		return 0;
	u64 task = *seen;
	w->who.start = task_field(task, start_boottime);
	if (!level) {
		w->who.tid = task_field(task, pid);
		w->who.tgid = task_field(task, tgid);
		return 1;
	}
	w->who.tid = number_in(w, task, level);
	u64 leader = memory_at(w, task_field(task, group_leader), bpf_core_type_size(struct task_struct));
	w->who.tgid = leader ? number_in(w, leader, level) : 0;
	return 1;
}

// forget_waits drops what is known of rings and page tables. It is called before a
// window's first thread (trap) and before each task (pull).
static __always_inline void forget_waits(void)
{
	struct wait_work *w = cfg_wait ? my_wait_work() : 0;
	if (!w)
		return;
	user_forget(&w->mem);
	bpf_probe_read_kernel(w->memo, sizeof(w->memo), 0); // fails, and clears it
}

// forget_futexes drops what is known of page tables alone, before each item.
static __always_inline void forget_futexes(void)
{
	struct wait_work *w = cfg_wait ? my_wait_work() : 0;
	if (w)
		user_forget(&w->mem);
}

#endif
