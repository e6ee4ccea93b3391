// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A thread's user stack: its frame-pointer chain, and bytes of the stack. A short
// stack is copied whole. Of a longer one the top is copied, and more as far as the chain
// goes. If the chain did not come to an end, bytes are copied up to a limit.
//
// The work has two passes. The first follows the chain and plans which pieces of the
// stack to copy, all in the worker's own map memory. Then the exact size is known, and
// room is reserved once. The second pass writes.
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
	USER_TOP = 1024, // of a stack, in any case; Go's MinUserBytes
	PIECE = 4096,    // copied at once; never more than the smallest page there is
	PIECES = 32,     // of them at most USER_BYTES / PIECE + 2 in use
	BYTES_HEAD = sizeof(struct kc_header) + 16, // and the address and length of a piece
	STACK_MOST = 8 << 20, // how far a chain may lead where the stack's end is not known
};

// The calling convention aligns a frame record so: arm64 keeps sp at 16 bytes, amd64
// pushes words of 8.
#if defined(__TARGET_ARCH_x86)
#define FP_ALIGN 8
#else
#define FP_ALIGN 16
#endif

// One piece: its user address, and where the kernel sees it. at 0: not there. A piece
// ends where the next one begins.
struct user_piece { u64 va, at; };

// The state of one walk. Only the programs on this CPU write it. It is in map memory,
// not in registers or on the stack, since the verifier does not follow values there:
// each value that it followed would be one more state to check.
struct user_work {
	struct user_memory mem;
	u64 sp, fp, low, end;  // registers (record_user read them); the next frame is in [low, end)
	u64 va, upto;          // what is planned next, and how far
	u64 run, filled;       // the open run of bytes: address, length
	u64 missed, gap;       // numbers, plus one: page where the chain ended; last page that was not there to copy
	u64 clock;
	u32 known, outermost;  // registers were read; the chain has an end
	u64 far;               // end of the part that is copied apart, behind a gap; 0: there is none
	// pieces planned; the next to copy; a run of bytes is open; bytes that the plan needs,
	// and while copying 1 if it failed; WALK_*
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

// forget_tables drops what is known of page tables. It is called before each item: a task
// on a CPU that was not stopped may have freed its tables since the last one.
static __always_inline void forget_tables(void)
{
	struct user_work *u = cfg_user_mode ? my_user_work() : 0;
	if (u)
		user_forget(&u->mem);
}

// note_registers keeps what the walk begins at. v is the copy of the user registers in
// the order of pt_regs, nr the system call. With nr -1 the thread is in no call: the
// saved registers are those of the interrupted instruction (USER_EXACT).
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

// stack_limit returns the address at which the stack that holds sp ends at most. That is
// the end of its mapping. The main thread's stack ends sooner: above mm->start_stack the
// kernel has put the arguments and the environment (fs/binfmt_elf.c,
// create_elf_tables), which may hold secrets. Two words more are allowed, since an
// unwinder looks above the outermost frame. If the tree led to memory that is not
// ordinary, the end is not known, and the walk's flags say why.
static __always_inline u64 stack_limit(struct user_work *u, struct mm_struct *mm)
{
	struct maple *m = the_maple();
	u64 end = stack_end(mm, u->sp), args = mm->start_stack + 16;
	// stack_end has left the mapping's slot in m->link. The file tells later whether an
	// absent page could be in a file (miss).
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

// miss counts a page that could not be read, and notes why in the flags. again: the page
// was counted before, since chain and plan may both come to it. An empty entry means
// "never written to" only in a mapping without a file; file pages may be on disk.
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

// stop_at ends the chain and keeps the address at which it ended, for the report.
static __always_inline int stop_at(struct user_work *u, u64 va)
{
	u->walk.stop_addr = va;
	return 1;
}

// missed_frame ends the chain at a page that is not there. If va lies between sp and what
// is planned already, the plan has counted this page.
static __always_inline int missed_frame(struct user_work *u, u64 va)
{
	u64 page = va >> cfg_page_shift;
	miss(u, va, u->va > u->sp && va >= u->sp && page <= (u->va - 1) >> cfg_page_shift);
	u->missed = page + 1;
	return stop_at(u, va);
}

// chain_step takes one link: the pair {caller's frame pointer, return address}. Each
// frame must lie above the last one (low), so a damaged chain cannot go in a circle.
// 1: the chain has ended.
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
	// user_at vouches for memory up to the end of the page only.
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
	// cfg_user_frames is not more, but the verifier wants a bound on the index itself.
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

// plan_step looks up the next piece of the stack. It always writes a piece that is not
// there behind the last one: copy_step takes the last one's length from it, and ends the
// run there. 1: this part is planned, or the table is full.
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
		// The worst case: each piece becomes an item of its own, with padding.
		u->room += len + BYTES_HEAD + 16;
	} else {
		// Pages that were never written to do not count against the limit, so the end moves
		// up by as much. It stays within USER_BYTES of sp.
		u64 number = (va >> cfg_page_shift) + 1;
		miss(u, va, number == u->missed || number == u->gap);
		u->gap = number;
		if (u->grow && u->mem.why != PAGE_REFUSED)
			u->upto = smaller(u->upto + len, smaller(u->sp + USER_BYTES, u->end));
	}
	// The chain begins in the top: load its lines now, together.
	if (at && va < u->sp + USER_TOP)
		sink_fetch_user(at);
	u->piece[n].at = at;
	u->pieces = n + 1;
	u->va = va + len;
	return 0;
}

// end_run makes one item of the pieces that were copied one behind the other: header,
// address, length, bytes. They are in place already (copy_step); the header comes last,
// since only now the length is known. The two words behind the bytes are the padding.
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

// copy_step copies one piece, or ends the run if the piece is not there. The last one
// never is (plan_step), so every run is ended. 1: done, or u->room says that it failed.
static __noinline int copy_step(struct sink *s, struct user_work *u)
{
	u64 k = u->next;
	if (k > u->pieces)
		return 1;
	hide(k);
	if (k >= PIECES - 1)
		return 1;
	// plan_step has used PIECES - 1 places at most, so piece[k + 1] exists.
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
	// The tables named this page, but the kernel's map of memory does not have it.
	u->mem.why = PAGE_REFUSED;
	miss(u, va, 0);
	u->room = end_run(s, u) != 0;
	return u->room;
}
REPEATED(copy_step)

struct walk_item { KC_ITEM(struct linux_user_walk, walk); };
struct latency_item { KC_ITEM(struct latency_thread, latency); };

// What stands behind a thread's user stack: the latency record, the end of the thread,
// the end of its task. The stack reserves room for it too, so that nothing after it can
// fail for lack of room.
#define THREAD_END ((cfg_latency >= 2 ? sizeof(struct latency_item) : 0) + 2 * sizeof(struct kc_header))

// put_chain writes the links as one array. Each is 16 bytes, so there is no padding.
static __always_inline long put_chain(struct sink *s, struct user_work *u)
{
	u64 n = u->walk.links;
	if (!n)
		return 0;
	u->chain.h.type = KC_ARRAY_PAD0;
	u->chain.h.size = n * sizeof(u->chain.v[0]);
	u->chain.h.flags = ((u64)KC_LX_USER_CHAIN << 32) | n;
	return sink_write(s, &u->chain, sizeof(u->chain.h) + n * sizeof(u->chain.v[0]), sizeof(u->chain));
}

// put_walk writes how the walk went. It comes last, since end_run counts bytes in it, and
// its time includes the copy.
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

// Phases of a walk, in order. The top is planned before the chain: the chain begins in
// the top, whose lines are then loaded (plan_step). The rest is planned after the chain,
// which says how much of it is wanted.
enum { WALK_TOP, WALK_CHAIN, WALK_REST, WALK_FAR };

static __always_inline void plan_to(struct user_work *u, u32 phase, u64 upto)
{
	u->phase = phase;
	u->upto = smaller(upto, u->end);
}

// plan_rest decides how much is copied beyond the top.
//   - The stack's end is known and near enough: everything.
//   - The chain has an end: as far as the chain goes, and USER_TOP farther. The callers of
//     its last function may stand there. A chain with an end can still lack callers: a
//     function without a frame passes on its caller's frame pointer, and every thread
//     begins with 0.
//   - The chain has no end, or no link: up to the limit. Pages that were never written
//     to do not count (grow).
//   - If that is more than the limit: the lower part, and the last USER_TOP bytes apart.
// The links share cfg_user_room with the bytes: engine pull's buffer holds both.
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

// plan_far goes on at the end of the chain, where a part is to be copied apart. 1: there
// is no such part.
static __always_inline int plan_far(struct user_work *u)
{
	if (!u->far)
		return 1;
	// The last piece, which is not there (plan_step), becomes the gap between the parts.
	if (u->low > u->va) {
		u->pieces++;
		u->va = u->low;
	}
	plan_to(u, WALK_FAR, u->far);
	u->far = 0;
	return 0;
}

// walk_step takes one step of the current phase. One loop serves all phases, since the
// verifier spends much on each loop. 1: the walk is over.
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

// walk_stack runs the first pass. The loop needs a turn for each link and each piece; PIECES
// once more is for the turns that change the phase.
static __always_inline void walk_stack(struct sink *s, struct user_work *u, struct mm_struct *mm)
{
	user_of(&u->mem, mm);
	u->end = stack_limit(u, mm);
	u->low = u->va = u->sp;
	mark(u->walk.flags, USER_WALKED);
	plan_to(u, cfg_user_mode == USER_STACKS_AUTO ? WALK_TOP : WALK_CHAIN, u->sp + USER_TOP);
	repeat(USER_FRAMES + 2 * PIECES, walk_step, s, u);
}

// record_user_stack writes the chain, the bytes, and last how the walk went. A thread
// whose registers were not read (known) has no record. A 32-bit thread has only the
// record of the walk: its frames have another layout.
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
	// The only reservation: from here on nothing is left out for lack of room.
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
