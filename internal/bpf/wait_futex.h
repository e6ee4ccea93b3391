// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The futex words that a thread waits for, and the bytes around each, out of user
// memory. What they say of an owner is collation's to find out.
#ifndef STACKSHOT_WAIT_FUTEX_H
#define STACKSHOT_WAIT_FUTEX_H

// Numbers of the calls (arch/*/entry/syscalls, include/uapi/asm-generic/unistd.h). A call of
// the 32-bit ABI has numbers of its own, and of futex two, for two sizes of its timeout.
#if defined(__TARGET_ARCH_x86)
enum { NR_FUTEX = 202 };
#else
enum { NR_FUTEX = 98 };
#endif
enum { NR_COMPAT_FUTEX = 240, NR_COMPAT_FUTEX_TIME64 = 422, NR_FUTEX_WAITV = 449, NR_FUTEX_WAIT = 455 };

// Operations that wait (include/uapi/linux/futex.h). FUTEX_WAIT_REQUEUE_PI waits for its
// first word; once it was moved to the second, that is an rt_mutex for the kernel (wait_pi).
enum { OP_WAIT = 0, OP_LOCK_PI = 6, OP_WAIT_BITSET = 9, OP_WAIT_REQUEUE_PI = 11, OP_LOCK_PI2 = 13, OP_PRIVATE = 128, OP_FLAGS = 128 | 256 };

static __always_inline bool op_waits(u32 op)
{
	return op == OP_WAIT || op == OP_WAIT_BITSET || op == OP_LOCK_PI || op == OP_LOCK_PI2 || op == OP_WAIT_REQUEUE_PI;
}

// Argument n of the call, of 32 bits in a call of the 32-bit ABI.
static __always_inline u64 call_arg(struct wait_work *w, u32 n)
{
	if (w->flags & FUTEX_COMPAT)
		return (u32)kernel_word(w->regs + call_place(n, 1));
	return kernel_word(w->regs + call_place(n, 0));
}

static __always_inline void read_range(struct wait_work *w, u64 va, u64 len)
{
	w->va = va;
	w->upto = va + len;
	w->copied = w->have = w->miss = 0;
}

// begin_word plans the bytes around a word. The kernel refuses a word that is not aligned.
static __always_inline void begin_word(struct wait_work *w, u64 addr)
{
	volatile u64 *bytes = (volatile u64 *)w->bytes;
	bytes[0] = bytes[1] = bytes[2] = bytes[3] = bytes[4] = 0;
	w->place = 0;
	w->flags &= ~(u64)(FUTEX_ABSENT | FUTEX_REFUSED);
	read_range(w, (addr & ~3ull) - FUTEX_BEFORE, FUTEX_BYTES);
}

// read_piece copies what lies in one page. A piece that is not there leaves a gap.
static __always_inline void read_piece(struct wait_work *w)
{
	u64 va = w->va, off = w->copied, at = user_at(&w->mem, va);
	u64 len = smaller(w->upto - va, PIECE - (va & (PIECE - 1)));
	hide(len);
	hide(off);
	if (len > 256 || off > 256)
		len = off = 0;
	if (!at || bpf_probe_read_kernel(w->bytes + off, len, (void *)at)) {
		w->miss = 1;
		if (at || w->mem.why == PAGE_REFUSED)
			mark(w->flags, FUTEX_REFUSED);
		else
			mark(w->flags, FUTEX_ABSENT);
	} else {
		mark(w->have, ((1ull << ((len >> 2) & 63)) - 1) << ((off >> 2) & 63));
		if (off <= FUTEX_BEFORE && off + len > FUTEX_BEFORE)
			w->place = at + FUTEX_BEFORE - off;
	}
	w->copied = off + len;
	w->va = va + len;
	if (!len)
		w->va = w->upto;
}

// end_word makes the record of the word at hand.
static __always_inline void end_word(struct wait_work *w)
{
	u64 n = w->next;
	hide(n);
	if (n >= WAIT_FUTEXES)
		return;
	struct linux_futex *f = &w->futex.v[n];
	f->addr = w->upto - FUTEX_BYTES + FUTEX_BEFORE;
	f->place = w->place;
	f->flags = w->flags;
	f->op = w->op;
	f->expected = w->expected;
	f->have = w->have;
	u64 *to = (u64 *)f->around;
	const u64 *from = (const u64 *)w->bytes;
	to[0] = from[0], to[1] = from[1], to[2] = from[2], to[3] = from[3], to[4] = from[4];
	f->object = f->owner_tid = f->owner_tgid = f->reserved = 0;
	f->owner_start = 0;
	w->next = n + 1;
}

// take_list keeps the list of a futex_waitv, whose bytes were read. If they were not, there
// is one record, without an address, which says why.
static __always_inline void take_list(struct wait_work *w)
{
	w->listing = 0;
	if (w->miss) {
		struct linux_futex *f = &w->futex.v[0];
		__builtin_memset(f, 0, sizeof(*f));
		f->flags = w->flags;
		w->next = w->futexes = 1;
		return;
	}
	bpf_probe_read_kernel(w->list, sizeof(w->list), w->bytes);
}

// next_listed begins with the next word of the list: struct futex_waitv is the value
// expected, the address, the flags. 1: there is none.
static __always_inline int next_listed(struct wait_work *w)
{
	u64 n = w->next;
	hide(n);
	if (n >= w->futexes || n >= WAIT_FUTEXES)
		return 1;
	w->expected = w->list[n * 3];
	mark(w->flags, FUTEX_PRIVATE);
	if (!(w->list[n * 3 + 2] & OP_PRIVATE))
		w->flags &= ~(u64)FUTEX_PRIVATE;
	begin_word(w, w->list[n * 3 + 1]);
	return 0;
}

// futex_step takes one piece of user memory. 1: all words are read.
static __noinline int futex_step(struct sink *s, struct wait_work *w)
{
	read_piece(w);
	if (w->va != w->upto)
		return 0;
	if (w->listing)
		take_list(w);
	else
		end_word(w);
	return next_listed(w);
}
REPEATED(futex_step)

// begin_futex finds out what the call waits for. False: it is none that waits for a futex.
// A call that a signal or a freezer interrupted goes on as restart_syscall, and is not
// known again.
static __noinline bool begin_futex(struct wait_work *w, struct task_struct *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);
	w->next = w->futexes = w->listing = 0;
	if (!kernels(regs)) // its stack is gone since
		return 0;
	s64 nr = syscall_nr(t, regs);
	bool compat = call_compat(t, regs);
	bool futex = compat ? nr == NR_COMPAT_FUTEX || nr == NR_COMPAT_FUTEX_TIME64 : nr == NR_FUTEX;
	if (!futex && nr != NR_FUTEX_WAIT && nr != NR_FUTEX_WAITV)
		return 0;
	w->at = (u64)regs;
	w->regs = peek(w->at);
	w->flags = w->op = w->expected = 0;
	if (compat)
		mark(w->flags, FUTEX_COMPAT);
	u64 first = call_arg(w, 0), second = call_arg(w, 1), fourth = call_arg(w, 3);
	if (futex) {
		u32 op = second & ~(u64)OP_FLAGS;
		if (!op_waits(op))
			return 0;
		w->op = op;
		if (op == OP_LOCK_PI || op == OP_LOCK_PI2)
			mark(w->flags, FUTEX_PI);
		else
			w->expected = call_arg(w, 2);
		if (second & OP_PRIVATE)
			mark(w->flags, FUTEX_PRIVATE);
		if (fourth)
			mark(w->flags, FUTEX_TIMED);
		begin_word(w, first);
	} else if (nr == NR_FUTEX_WAIT) { // addr, value, mask, flags, timeout
		w->expected = second;
		if (fourth & OP_PRIVATE)
			mark(w->flags, FUTEX_PRIVATE);
		if (call_arg(w, 4))
			mark(w->flags, FUTEX_TIMED);
		begin_word(w, first);
	} else { // list, its length, flags, timeout
		mark(w->flags, FUTEX_WAITV);
		if (fourth)
			mark(w->flags, FUTEX_TIMED);
		w->futexes = second;
		if ((u32)second > WAIT_FUTEXES) {
			mark(w->v.flags, WAIT_FEW_FUTEXES);
			w->futexes = WAIT_FUTEXES;
		}
		w->listing = 1;
		read_range(w, first, (u64)w->futexes * FUTEX_LIST);
	}
	return 1;
}

// wait_futex reads the words of a futex call. A task that is exiting has no memory.
static __noinline void wait_futex(struct sink *s, struct wait_work *w, struct task_struct *t)
{
	struct mm_struct *mm = t->mm;
	w->next = 0;
	if (!sleeps(t) || !mm || !has_user_regs(t) || !begin_futex(w, t))
		return;
	user_of(&w->mem, mm);
	repeat(4 * (WAIT_FUTEXES + 1), futex_step, s, w);
}

#endif
