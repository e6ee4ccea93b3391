// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The lock of a thread in D that no field names: on kernels without such fields, and
// wherever the wait is killable. A thread that waits for a lock has a waiter record in
// its kernel stack: two links of a ring, and the task. A stack also holds what earlier
// calls left there, so three things must agree:
//
//   - The stack has a return address into the slow path of a kind of lock, and the
//     record lies above it, where that function's variables are.
//   - Both neighbours in the ring point back to the record. One that was left behind is
//     in no ring any more.
//   - The ring leads to a lock. Until 2026 one node of the ring is no waiter but the
//     lock's list head. Since "locking/{mutex,rwsem,semaphore}: Remove the list_head
//     from struct ..." the lock points to its first waiter: it is a word of the stack
//     (the function keeps the address of its lock there) that leads to a pointer to
//     a node of our ring.
//
// Neither a node nor a list head can be told from other memory by its address: stacks
// are in vmalloc memory, and so are mapped devices. So a link is followed only from a
// record about which the first two agree, and a word of the stack only if it leads to
// ordinary memory or into the kernel's image.
#ifndef STACKSHOT_WAIT_SCAN_H
#define STACKSHOT_WAIT_SCAN_H

enum { SCAN_PHASE_STACK, SCAN_PHASE_LOCKS, SCAN_PHASE_RING };

// slow_path_of says into which kind of slow path a word points that lies between the first
// and the last, 0: into none. It is seek_ram's search (ram.h), without a branch.
static __always_inline u64 slow_path_of(u64 word)
{
	u64 i = 0;
#pragma unroll
	for (int bit = SLOW_BITS - 1; bit >= 0; bit--) {
		u64 begun = (cfg_slow[(i + (1 << bit)) & (SLOW_BOUNDS - 1)].at - 1 - word) >> 63;
		hide(begun);
		i += begun << bit;
		hide(i);
	}
	return cfg_slow[i & (SLOW_BOUNDS - 1)].kind;
}

static __always_inline int scan_over(struct wait_work *w, u32 how)
{
	w->v.scan = how;
	return 1;
}

// copy_rest copies the second half of the words, if it was left out so far.
static __always_inline bool copy_rest(struct wait_work *w)
{
	const u32 half = sizeof(w->stack) / 2;
	if (!w->rest)
		return 0;
	w->rest = 0;
	if (bpf_probe_read_kernel((char *)w->stack + half, half, (void *)(w->sp + half)))
		return 0;
	w->words = SCAN_WORDS;
	return 1;
}

// text_at is a word of the stack as an address of text. With CONFIG_ARM64_PTR_AUTH_KERNEL
// a return address is signed: the signature takes the bits above the address but bit 55,
// which are all 1 in the kernel's half (arch/arm64/include/asm/pointer_auth.h).
static __always_inline u64 text_at(u64 word)
{
#if defined(__TARGET_ARCH_arm64)
	return word | (cfg_wait_signed & (u64)((s64)(word << 8) >> 63));
#else
	return word;
#endif
}

// of_interest has a bit set if a word points into a slow path or is the task. Without a
// branch, for words that are mostly neither.
static __always_inline u64 of_interest(struct wait_work *w, u64 word)
{
	u64 in = text_at(word) - cfg_slow_start, differs = word ^ w->task;
	return (((in - cfg_slow_len) & ~in) | ~(differs | -differs)) >> 63;
}

// scan_word looks at the next word of the stack, or passes over four of no interest. 1: the
// scan is over.
static __always_inline int scan_word(struct wait_work *w)
{
	u64 i = w->i;
	hide(i);
	u64 from = i;
	hide(from); // 6.12 forgets the bound of what it has compared otherwise
	if (i + 4 <= w->words && from <= SCAN_WORDS - 4) {
		const u64 *at = w->stack + from;
		u64 any = of_interest(w, at[0]) | of_interest(w, at[1]) | of_interest(w, at[2]) | of_interest(w, at[3]);
		hide(any);
		if (!any) {
			w->i = i + 4;
			return 0;
		}
	}
	if (i >= w->words || i >= SCAN_WORDS)
		return copy_rest(w) ? 0 : scan_over(w, w->slow ? SCAN_NO_RING : SCAN_NO_PATH);
	w->i = i + 1;
	u64 word = w->stack[i];
	if (text_at(word) - cfg_slow_start < cfg_slow_len) {
		w->slow = slow_path_of(text_at(word));
		w->path = i; // the record lies above
		return 0;
	}
	if (word != w->task || !w->slow || i < w->path + 3)
		return 0;
	u64 own = w->sp + 8 * (i - 2), next = w->stack[(i - 2) & (SCAN_WORDS - 1)], prev = w->stack[(i - 1) & (SCAN_WORDS - 1)];
	if (!linked(next) || !linked(prev) || kernel_word(next + 8) != own || kernel_word(prev) != own)
		return 0;
	w->own = w->node = own;
	w->phase = SCAN_PHASE_RING;
	if (cfg_wait_ring) {
		w->phase = SCAN_PHASE_LOCKS;
		if (w->words > i + SCAN_BEHIND)
			w->words = i + SCAN_BEHIND;
		w->i = 0;
	}
	return 0;
}

// in_image says that a word is in the kernel's image or a module's (x86: between
// __START_KERNEL_map and the fixed mappings; no device is mapped there). Elsewhere that
// cannot be told from the address.
static __always_inline bool in_image(u64 at)
{
#if defined(__TARGET_ARCH_x86)
	return at >= 0xffffffff80000000ull && at < 0xffffffffff000000ull;
#else
	return 0;
#endif
}

static __always_inline u64 list_place(struct wait_work *w) { return cfg_wait_list[w->slow & 7]; }

// scan_lock asks whether the next word of the stack leads to a lock with waiters. Their
// records are in stacks, as ours is: near to it, as distances in 64 bits go.
static __always_inline int scan_lock(struct wait_work *w)
{
	u64 i = w->i, n = w->candidates;
	hide(i);
	hide(n);
	if (i >= w->words || i >= SCAN_WORDS || n >= SCAN_LOCKS) {
		w->phase = SCAN_PHASE_RING;
		return n ? 0 : scan_over(w, SCAN_NO_LOCK);
	}
	w->i = i + 1;
	u64 lock = w->stack[i];
	if (!linked(lock) || lock - w->stack_at < w->stack_size)
		return 0;
	u64 at = lock + list_place(w);
	if (!in_image(at))
		at = memory_at(w, at, 8);
	if (!at)
		return 0;
	u64 first = kernel_word(at);
	if (!linked(first) || (first ^ w->own) >> 46)
		return 0;
	w->lock[n] = lock, w->first[n] = first;
	w->candidates = n + 1;
	return 0;
}

// lock_of_first returns the candidate whose first waiter the node is, 0: none's.
static __always_inline u64 lock_of_first(struct wait_work *w)
{
	u64 node = w->node, lock = 0;
#pragma unroll
	for (int i = 0; i < SCAN_LOCKS; i++) {
		u64 differs = w->first[i] ^ node;
		differs = (differs | -differs) >> 63;
		hide(differs);
		lock |= w->lock[i] & (differs - 1);
	}
	return lock;
}

static __always_inline struct wait_memo *memo_of(struct wait_work *w, u64 node)
{
	u64 place = (node >> 12) * 0x9e3779b97f4a7c15ull >> 48;
	hide(place);
	return &w->memo[place & (WAIT_MEMO - 1)];
}

// remember keeps where a waiter stands, for those who come behind it. Beyond SCAN_HOPS there
// is no lock: who stands behind such a waiter is beyond, too.
static __always_inline void remember(struct wait_work *w, u64 lock, u32 hops)
{
	struct wait_memo *m = memo_of(w, w->own);
	m->node = w->own, m->lock = lock;
	m->hops = hops, m->off = list_place(w);
}

static __always_inline int scan_found(struct wait_work *w, u64 lock, u32 hops)
{
	if (hops > SCAN_HOPS) {
		w->hops = SCAN_HOPS;
		remember(w, 0, SCAN_HOPS + 1);
		return scan_over(w, SCAN_TOO_LONG);
	}
	remember(w, lock, hops);
	w->hops = hops;
	w->v.lock = lock;
	return scan_over(w, SCAN_FOUND);
}

// is_waiter says that a node is a waiter's record and no list head: it lies in the stack
// of the task named behind it.
static __always_inline bool is_waiter(struct wait_work *w, u64 node)
{
	u64 task = memory_at(w, kernel_word(node + 16), bpf_core_type_size(struct task_struct));
	return task && node - task_field(task, stack) < w->stack_size;
}

// scan_ring goes one waiter back, towards the first. Whoever was looked at before, in
// this window, is known with its lock: the threads of a queue are mostly recorded in the
// order in which they came to it. w->hops counts waiters from our own on, so the
// result does not depend on who is known.
static __noinline int scan_ring(struct wait_work *w)
{
	u64 node = w->node;
	if (cfg_wait_ring) {
		u64 lock = lock_of_first(w);
		if (lock)
			return scan_found(w, lock, w->hops);
	}
	u64 prev = kernel_word(node + 8);
	if (!linked(prev) || kernel_word(prev) != node)
		return scan_over(w, SCAN_NO_RING);
	if (prev == w->own)
		return scan_over(w, SCAN_NO_LOCK);
	struct wait_memo *m = memo_of(w, prev);
	if (m->node == prev && m->off == list_place(w))
		return scan_found(w, m->lock, w->hops + m->hops);
	if (!cfg_wait_ring && !is_waiter(w, prev))
		return scan_found(w, prev - list_place(w), w->hops);
	w->hops++;
	w->node = prev;
	return w->hops > SCAN_HOPS ? scan_found(w, 0, w->hops) : 0;
}

static __noinline int scan_step(struct sink *s, struct wait_work *w)
{
	if (w->phase == SCAN_PHASE_RING)
		return scan_ring(w);
	return w->phase == SCAN_PHASE_LOCKS ? scan_lock(w) : scan_word(w);
}
REPEATED(scan_step)

// scan_stack scans the words that were copied.
static __always_inline void scan_stack(struct sink *s, struct wait_work *w)
{
	w->i = w->slow = w->phase = w->candidates = w->own = w->path = 0;
	w->hops = 1;
	__builtin_memset(w->first, 0, sizeof(w->first));
	repeat(2 * SCAN_WORDS + SCAN_HOPS + 4, scan_step, s, w);
	if (w->own)
		w->v.hops = w->hops;
	if (w->v.scan == SCAN_FOUND) {
		w->v.kind = w->slow;
		mark(w->v.flags, WAIT_SCAN);
	}
}

#endif
