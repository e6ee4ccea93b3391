// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A thread's user stack: its frame-pointer chain, and bytes of the stack. A short
// stack is taken whole. Of a longer one the top is taken, and more as far as the chain
// goes; if the chain did not come to an end, up to a limit.
// Everything is collected first, in memory of the worker's own. So room is reserved
// once, and exactly.
#ifndef STACKSHOT_RECORD_USER_H
#define STACKSHOT_RECORD_USER_H

enum user_mode { USER_STACKS_OFF, USER_STACKS_FP, USER_STACKS_AUTO };

// Set by the loader before the programs are loaded; constant after.
const volatile u32 cfg_user_mode;   // enum user_mode
const volatile u32 cfg_user_frames; // links of a chain, at most USER_FRAMES
const volatile u32 cfg_user_bytes;  // of a stack, at most USER_BYTES
const volatile u32 cfg_user_room;   // for these and the links of the chain together

enum {
	USER_FRAMES = 1000,
	USER_BYTES = 64 << 10,
	USER_TOP = 1024, // of a stack, in any case
	PIECE = 4096,    // copied at once; never more than a page
	PIECES = 32,     // of them at most USER_BYTES / PIECE + 2 in use
	BYTES_HEAD = sizeof(struct kc_header) + 16, // and the address and length of a piece
	STACK_MOST = 8 << 20,
};

// Aligned as the architecture's calling convention has it.
#if defined(__TARGET_ARCH_x86)
#define FP_ALIGN 8
#else
#define FP_ALIGN 16
#endif

struct user_piece { u64 va, at; }; // at 0: not there

// Written by the programs on their CPU alone. registers: what record_user saw.
struct user_work {
	struct user_memory mem;
	u64 sp, fp, low, end;  // registers; where the next frame may be
	u64 va, upto;          // what is planned next, and how far
	u64 run, filled;       // the open run of bytes: address, length
	u64 missed, gap;       // the page at which the chain ended, and the last that was not there to copy, plus one
	u64 clock;
	u32 known, outermost;  // registers were read; the chain has an end
	u64 far;               // where the outer end of a long stack ends, 0: it is not copied apart
	u32 pieces, next, in_run, room, phase;
	u32 grow;              // what is absent is made up for, as far as USER_BYTES from sp
	u64 file;              // of the stack's mapping; 0: none, or the mapping is not known
	struct linux_user_walk walk;
	u64 pair[2];
	struct user_piece piece[PIECES];
	struct { struct kc_header h; struct linux_user_link v[USER_FRAMES]; } chain;
};

_Static_assert(sizeof(((struct user_work *)0)->chain) == MOST_WRITTEN, "the sinks write a chain");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct user_work);
} user_works SEC(".maps");

static __always_inline struct user_work *my_user_work(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&user_works, &zero);
}

// forget_tables: page tables may have changed since.
static __always_inline void forget_tables(void)
{
	struct user_work *u = cfg_user_mode ? my_user_work() : 0;
	if (u)
		user_forget(&u->mem);
}

// note_registers keeps what the walk begins at.
static __always_inline void note_registers(const u64 *v, s64 nr)
{
	struct user_work *u = cfg_user_mode ? my_user_work() : 0;
	if (!u)
		return;
	u->sp = v[REG_SP], u->fp = v[REG_FP];
	u->known = 1;
	u->walk.flags = 0;
	if (nr == -1)
		mark(u->walk.flags, USER_EXACT);
	if (regs_compat(v))
		mark(u->walk.flags, USER_COMPAT);
}

// stack_limit is where the stack that holds sp ends at most: with its mapping; of the
// process's first, where the kernel has put the arguments and the environment
// (fs/binfmt_elf.c, create_elf_tables), and two words more, for who looks above the
// outermost frame. Of a tree that leads to what is not ordinary memory that is not
// known, and said.
static __always_inline u64 stack_limit(struct user_work *u, struct mm_struct *mm)
{
	struct maple *m = the_maple();
	u64 end = stack_end(mm, u->sp), args = mm->start_stack + 16;
	u->walk.stack_end = end;
	u->file = 0;
	if (m && end)
		u->file = follow_field(m, vm_area_struct, m->link, vm_file);
	if (m && m->refused) {
		mark(u->walk.flags, USER_REFUSED);
		u->walk.refused += m->refused;
	}
	if (!end)
		return u->sp + STACK_MOST;
	return u->sp < args && args < end ? args : end;
}

// miss books a page that is not to be had; the one that the chain missed once
// only, though it was or will be planned too.
static __always_inline void miss(struct user_work *u, u64 va, bool again)
{
	bool refused = u->mem.why == PAGE_REFUSED;
	bool none = u->mem.why == PAGE_NONE && !u->file;
	mark(u->walk.flags, refused ? USER_REFUSED : none ? USER_NO_PAGE : USER_PAGED_OUT);
	if (again)
		return;
	if (refused)
		u->walk.refused++;
	else
		u->walk.absent++;
}

static __always_inline int stop_at(struct user_work *u, u64 va)
{
	u->walk.stop_addr = va;
	return 1;
}

static __always_inline int missed_frame(struct user_work *u, u64 va)
{
	u64 page = va >> cfg_page_shift;
	miss(u, va, u->va > u->sp && va >= u->sp && page <= (u->va - 1) >> cfg_page_shift);
	u->missed = page + 1;
	return stop_at(u, va);
}

// chain_step takes one link: the pair {caller's frame pointer, return address}.
static __always_inline int chain_step(struct user_work *u)
{
	u64 fp = u->fp, n = u->walk.links;
	if (!fp) {
		u->outermost = 1;
		return 1;
	}
	if ((fp & (FP_ALIGN - 1)) || fp < u->low || fp >= u->end || u->end - fp < 16) {
		mark(u->walk.flags, USER_OUTSIDE);
		return stop_at(u, fp);
	}
	if (n >= cfg_user_frames) {
		mark(u->walk.flags, USER_TRUNCATED);
		return stop_at(u, fp);
	}
	u64 at = user_at(&u->mem, fp);
	if (!at)
		return missed_frame(u, fp);
	if ((fp & (PIECE - 1)) != PIECE - 8) {
		kernel_pair(at, u->pair);
	} else { // the pair may lie in two pages
		u->pair[0] = kernel_word(at);
		at = user_at(&u->mem, fp + 8);
		if (!at)
			return missed_frame(u, fp + 8);
		u->pair[1] = kernel_word(at);
	}
	if (!u->pair[1]) {
		u->outermost = 1;
		return 1;
	}
	hide(n);
	if (n >= USER_FRAMES)
		return 1;
	u->chain.v[n].fp = fp, u->chain.v[n].pc = u->pair[1];
	u->walk.links = n + 1;
	u->low = fp + 16;
	u->fp = u->pair[0];
	return 0;
}

static __always_inline u64 smaller(u64 a, u64 b) { return a < b ? a : b; }

// plan_step looks up the next piece of the stack.
static __always_inline int plan_step(struct user_work *u)
{
	u64 va = u->va, n = u->pieces, page = 1ull << cfg_page_shift;
	hide(n);
	if (n >= PIECES - 1)
		return 1;
	u->piece[n].va = va, u->piece[n].at = 0;
	if (va >= u->upto)
		return 1;
	u64 at = user_at(&u->mem, va);
	u64 len = at ? PIECE - (va & (PIECE - 1)) : page - (va & (page - 1));
	if (len > u->upto - va)
		len = u->upto - va;
	if (at) {
		u->room += len + BYTES_HEAD + 16;
	} else {
		u64 number = (va >> cfg_page_shift) + 1;
		miss(u, va, number == u->missed || number == u->gap);
		u->gap = number;
		if (u->grow && u->mem.why != PAGE_REFUSED)
			u->upto = smaller(u->upto + len, smaller(u->sp + USER_BYTES, u->end));
	}
	if (at && va < u->sp + USER_TOP)
		sink_fetch_user(at);
	u->piece[n].at = at;
	u->pieces = n + 1;
	u->va = va + len;
	return 0;
}

// end_run makes an item of the pieces that were copied one behind the other.
static __always_inline long end_run(struct sink *s, struct user_work *u)
{
	u64 n = u->filled, pad = KC_PAD(n);
	u->in_run = u->filled = 0;
	if (!n)
		return 0;
	u64 *tail = sink_piece(s, BYTES_HEAD + n);
	struct { struct kc_header h; u64 va, len; } *i = sink_piece(s, 0);
	if (!i || !tail)
		return NO_ROOM;
	tail[0] = tail[1] = 0;
	kc_bytes(&i->h, KC_LX_USER_BYTES, 16 + n);
	i->va = u->run;
	i->len = n;
	u->walk.bytes += n;
	return sink_commit_pieces(s, BYTES_HEAD + n + pad);
}

// copy_step copies one piece, or ends a run where there is none. After the last
// comes one that is not there (plan_step).
static __noinline int copy_step(struct sink *s, struct user_work *u)
{
	u64 k = u->next;
	if (k > u->pieces)
		return 1;
	hide(k);
	if (k >= PIECES - 1)
		return 1;
	u64 va = u->piece[k].va, at = u->piece[k].at, len = u->piece[k + 1].va - va;
	u->next = k + 1;
	if (!at) {
		u->room = end_run(s, u) != 0;
		return u->room;
	}
	if (!u->in_run)
		u->run = va;
	u->in_run = 1;
	void *to = sink_piece(s, BYTES_HEAD + u->filled);
	hide(len);
	if (!to || len > PIECE)
		return u->room = 1;
	if (bpf_probe_read_kernel(to, len, (void *)at) == 0) {
		u->filled += len;
		return 0;
	}
	u->mem.why = PAGE_REFUSED;
	miss(u, va, 0);
	u->room = end_run(s, u) != 0;
	return u->room;
}
REPEATED(copy_step)

struct walk_item { KC_ITEM(struct linux_user_walk, walk); };
struct latency_item { KC_ITEM(struct latency_thread, latency); };

// What stands behind a thread's user stack, with the end of its task.
#define THREAD_END ((cfg_latency >= 2 ? sizeof(struct latency_item) : 0) + 2 * sizeof(struct kc_header))

static __always_inline long put_chain(struct sink *s, struct user_work *u)
{
	u64 n = u->walk.links;
	if (!n)
		return 0;
	u->chain.h.type = KC_ARRAY_PAD0;
	u->chain.h.size = n * sizeof(u->chain.v[0]);
	u->chain.h.flags = ((u64)KC_LX_USER_CHAIN << 32) | n;
	return sink_write(s, &u->chain, sizeof(u->chain.h) + n * sizeof(u->chain.v[0]));
}

static __always_inline long put_walk(struct sink *s, struct user_work *u)
{
	struct walk_item *i = sink_reserve(s, sizeof(*i));
	if (!i)
		return NO_ROOM;
	kc_item_full(&i->walk, KC_LX_USER_WALK);
	u->walk.translations = u->mem.walks;
	if (cfg_latency >= 2)
		u->walk.walk_ns = bpf_ktime_get_ns() - u->clock;
	i->walk.v = u->walk;
	return sink_commit(s, sizeof(*i));
}

// Phases of a walk, in order: the top of the stack is planned before the chain is
// followed, which begins there, and the rest after.
enum { WALK_TOP, WALK_CHAIN, WALK_REST, WALK_FAR };

static __always_inline void plan_to(struct user_work *u, u32 phase, u64 upto)
{
	u->phase = phase;
	u->upto = smaller(upto, u->end);
}

// plan_rest says what is copied below the top. All of it, if that is little enough.
// Of a longer one, and where the end is not known, as far as the chain goes, and
// USER_TOP farther, where those stand that called its last function: that the chain
// has an end does not make it whole, for a function without a frame hands on its
// caller's frame pointer, and every thread begins with 0. Of what is then too long
// both ends. A chain without a link says nothing. Buffers that nobody has written to
// are absent, and count for nothing.
static __always_inline void plan_rest(struct user_work *u)
{
	u64 links = u->walk.links * sizeof(u->chain.v[0]), last = u->low + USER_TOP;
	u64 most = smaller(cfg_user_bytes, cfg_user_room > links ? cfg_user_room - links : 0);
	u64 limit = u->sp + most;
	u->far = 0;
	if (u->walk.stack_end && u->end - u->sp <= most) {
		plan_to(u, WALK_REST, u->end);
		return;
	}
	if (!u->outermost || !links) {
		u->grow = 1;
		last = limit;
	}
	if (last > limit && most >= 2 * USER_TOP) {
		u->far = last;
		limit -= USER_TOP;
	}
	plan_to(u, WALK_REST, smaller(last, limit));
}

// plan_far goes on at the end of the chain. 1: there is nothing to do.
static __always_inline int plan_far(struct user_work *u)
{
	if (!u->far)
		return 1;
	if (u->low > u->va) { // what plan_step has left at the end becomes the gap
		u->pieces++;
		u->va = u->low;
	}
	plan_to(u, WALK_FAR, u->far);
	u->far = 0;
	return 0;
}

// walk_step is one step of whatever phase it is: one loop instead of three, since
// each is dear to the verifier.
static __noinline int walk_step(struct sink *s, struct user_work *u)
{
	if (u->phase == WALK_CHAIN) {
		if (!chain_step(u))
			return 0;
		if (cfg_user_mode != USER_STACKS_AUTO)
			return 1;
		plan_rest(u);
		return 0;
	}
	if (!plan_step(u))
		return 0;
	if (u->phase != WALK_TOP)
		return plan_far(u);
	u->phase = WALK_CHAIN;
	return 0;
}
REPEATED(walk_step)

static __always_inline void walk_stack(struct sink *s, struct user_work *u, struct mm_struct *mm)
{
	user_of(&u->mem, mm);
	u->end = stack_limit(u, mm);
	u->low = u->va = u->sp;
	mark(u->walk.flags, USER_WALKED);
	plan_to(u, cfg_user_mode == USER_STACKS_AUTO ? WALK_TOP : WALK_CHAIN, u->sp + USER_TOP);
	repeat(USER_FRAMES + 2 * PIECES, walk_step, s, u);
}

// record_user_stack writes chain, bytes and, last, how it went.
static __noinline long record_user_stack(struct sink *s, struct task_struct *t)
{
	if (!cfg_user_mode)
		return 0;
	struct user_work *u = my_user_work();
	if (!u || !u->known)
		return 0;
	u->known = u->outermost = u->pieces = u->next = u->in_run = u->room = 0;
	u->missed = u->gap = u->grow = u->filled = u->piece[0].at = 0;
	u->walk.links = u->walk.bytes = u->walk.absent = u->walk.refused = u->walk.frames = 0;
	u->walk.walk_ns = 0;
	u->walk.stack_end = u->walk.stop_addr = 0;
	u->mem.walks = 0;
	if (cfg_latency >= 2)
		u->clock = bpf_ktime_get_ns();
	struct mm_struct *mm = t->mm;
	if (!mm)
		mark(u->walk.flags, USER_NO_MEMORY);
	else if (!(u->walk.flags & USER_COMPAT))
		walk_stack(s, u, mm);
	if (!sink_room(s, sizeof(u->chain.h) + u->walk.links * sizeof(u->chain.v[0]) + u->room + sizeof(struct walk_item) + THREAD_END))
		return NO_ROOM;
	u->room = 0;
	if (put_chain(s, u))
		return NO_ROOM;
	if (cfg_user_mode == USER_STACKS_AUTO)
		repeat(PIECES, copy_step, s, u);
	return u->room ? NO_ROOM : put_walk(s, u);
}

#endif
