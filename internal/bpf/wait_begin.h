// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Whether a thread sleeps in a call with a descriptor, and what its arguments say: the
// timeout, the range of a file lock. Then its files are taken (wait_file.h).
#ifndef STACKSHOT_WAIT_BEGIN_H
#define STACKSHOT_WAIT_BEGIN_H

// Commands of fcntl(2) that wait. The 64-bit one is of the 32-bit ABIs alone.
enum { F_SETLKW_ = 7, F_SETLKW64_ = 14, F_OFD_SETLKW_ = 38 };
enum { TASK_STOPPED_ = 0x4, TASK_TRACED_ = 0x8 };
// As few turns as all sets and sums may take.
enum { FILE_TURNS = FILE_COUNTED / 16 + WAIT_FILES * (PIPE_LOOKED + 16) };

// set_call takes a row of the table of calls.
static __always_inline void set_call(struct file_work *f, const volatile struct file_call *c)
{
	f->op = c->op, f->way = c->way, f->ends = c->flags, f->flags = 0;
	u64 time = c->time, arg = f->arg[time & 7];
	if (c->way == WAY_POLL || c->way == WAY_SELECT)
		mark(f->flags, FILE_POLLED);
	if (((time & TIME_POINTER) && arg) || ((time & TIME_MS) && (s32)arg >= 0))
		mark(f->flags, FILE_TIMED);
}

// user_word is a little-endian word of user memory whose halves may lie in two pages.
static __always_inline u64 user_word(struct wait_work *w, u64 va)
{
	u64 low = user_half(w, va) ? w->word : 0;
	return low | (user_half(w, va + 4) ? w->word << 32 : 0);
}

// lock_range reads struct flock: l_type, l_whence, l_start, l_len. The old one of 32 bits has
// short numbers; that with long ones has no padding on i386.
static __always_inline void lock_range(struct wait_work *w, u32 cmd)
{
	struct file_work *f = &w->f;
	u64 va = f->arg[2], at = 8;
	if (!user_half(w, va)) {
		mark(f->flags, FILE_NO_SET);
		return;
	}
	f->lock_how = w->word;
	if (f->compat && cmd == F_SETLKW_) {
		u64 both = user_word(w, va + 4);
		f->lock_start = (s64)(s32)both, f->lock_len = (s64)both >> 32;
		return;
	}
#if defined(__TARGET_ARCH_x86)
	if (f->compat)
		at = 4;
#endif
	f->lock_start = user_word(w, va + at), f->lock_len = user_word(w, va + at + 8);
}

static __always_inline void set_fcntl(struct wait_work *w)
{
	struct file_work *f = &w->f;
	u32 cmd = f->arg[1];
	if (cmd == F_OFD_SETLKW_)
		f->op = FILE_OP_OFD;
	else if (cmd == F_SETLKW_ || (f->compat && cmd == F_SETLKW64_))
		f->op = FILE_OP_POSIX;
	else
		return;
	lock_range(w, cmd);
}

// set_socketcall: the arguments of this call of i386 are in memory. Nothing is recorded if
// that is absent.
static __always_inline void set_socketcall(struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 n = f->arg[0], va = f->arg[1];
	hide(n);
	f->way = WAY_NONE;
	if (n >= 32 || !user_half(w, va))
		return;
	f->arg[0] = w->word;
	f->arg[4] = user_half(w, va + 16) ? w->word : 0;
	set_call(f, &cfg_socketcalls[n]);
}

// begin_files finds the call. False: it has no descriptor. A thread that a signal stopped, or
// that a tracer stopped, has left its call.
static __noinline bool begin_files(struct wait_work *w, struct task_struct *t)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);
	struct file_work *f = &w->f;
	if (!kernels(regs) || (t->__state & (TASK_STOPPED_ | TASK_TRACED_)))
		return 0;
	u64 nr = syscall_nr(t, regs);
	hide(nr);
	if (nr >= FILE_CALLS)
		return 0;
	peek(f->compat) = call_compat(t, regs);
	u64 row = nr + (peek(f->compat) ? FILE_CALLS : 0);
	hide(row);
	if (row >= 2 * FILE_CALLS || !cfg_calls[row].way)
		return 0;
	w->at = (u64)regs;
	w->regs = peek(w->at);
	w->flags = f->compat ? FUTEX_COMPAT : 0;
	f->arg[0] = call_arg(w, 0), f->arg[1] = call_arg(w, 1), f->arg[2] = call_arg(w, 2);
	f->arg[3] = call_arg(w, 3), f->arg[4] = call_arg(w, 4);
	f->lock_how = f->lock_start = f->lock_len = 0;
	set_call(f, &cfg_calls[row]);
	return 1;
}

// wait_files takes the files of a call. What a thread that runs elsewhere does, nobody knows.
static __noinline void wait_files(struct sink *s, struct wait_work *w, struct task_struct *t)
{
	struct mm_struct *mm = t->mm;
	struct file_work *f = &w->f;
	f->n = f->sockets = f->count = f->turn = f->phase = 0;
	f->bits[0] = f->bits[1] = f->bits[2] = 0;
	if (!cfg_files || !sleeps(t) || !mm || !has_user_regs(t) || !begin_files(w, t))
		return;
	user_of(&w->mem, mm);
	if (f->way == WAY_FLOCK)
		f->lock_how = (u32)f->arg[1];
	else if (f->way == WAY_FCNTL)
		set_fcntl(w);
	else if (f->way == WAY_SOCKETCALL)
		set_socketcall(w);
	w->at = (u64)t->files;
	file_table(w, peek(w->at));
	repeat(FILE_TURNS, file_step, s, w);
	if (f->phase != PHASE_NEXT)
		end_file(w);
	w->v.files = f->count < FILE_COUNTED ? f->count : FILE_COUNTED;
	if (f->count > WAIT_FILES)
		mark(w->v.flags, WAIT_FEW_FILES);
}

// What the files of a thread may take: more than its futexes would.
#define FILES_MOST (sizeof(((struct file_work *)0)->files) + sizeof(((struct file_work *)0)->socks))
_Static_assert(sizeof(((struct wait_work *)0)->futex) <= FILES_MOST, "WAIT_MOST may be too small");

// put_files writes both arrays. Few threads have many, so the room is asked for here; the end
// of the thread must fit behind them.
static __noinline long put_files(struct sink *s, struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 n = f->n, k = f->sockets;
	if (!n)
		return 0;
	if (!sink_room(s, 2 * sizeof(struct kc_header) + n * sizeof(f->files.v[0]) + k * sizeof(f->socks.v[0]) + 8 + THREAD_END))
		return NO_ROOM;
	f->files.h.type = KC_ARRAY_PAD0;
	f->files.h.size = n * sizeof(f->files.v[0]);
	f->files.h.flags = ((u64)KC_LX_FILE << 32) | n;
	if (sink_write(s, &f->files, sizeof(f->files.h) + n * sizeof(f->files.v[0]), sizeof(f->files)))
		return NO_ROOM;
	if (!k)
		return 0;
	u64 pad = (k & 1) * 8, size = k * sizeof(f->socks.v[0]) + pad;
	f->socks.h.type = KC_ARRAY_PAD0 | pad;
	f->socks.h.size = size;
	f->socks.h.flags = ((u64)KC_LX_SOCKET << 32) | k;
	return sink_write(s, &f->socks, sizeof(f->socks.h) + size, sizeof(f->socks));
}

#endif
