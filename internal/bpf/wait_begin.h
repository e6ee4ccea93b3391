// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Whether a thread sleeps in a call with a descriptor. Then its files are taken (wait_file.h),
// and written.
#ifndef STACKSHOT_WAIT_BEGIN_H
#define STACKSHOT_WAIT_BEGIN_H

enum { TASK_STOPPED_ = 0x4, TASK_TRACED_ = 0x8 };
// As few turns as all sets and sums may take.
enum { FILE_TURNS = FILE_COUNTED / 32 * 5 + WAIT_FILES * (PIPE_LOOKED + 16) };

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
		ask_lock(f);
	else if (f->way == WAY_SOCKETCALL)
		ask_socketcall(f);
	w->at = (u64)t->files;
	file_table(w, peek(w->at));
	file_turns(FILE_TURNS, s, w);
	if (f->phase != PHASE_NEXT)
		end_file(w);
	w->v.files = f->count < FILE_COUNTED ? f->count : FILE_COUNTED;
	if (f->count > WAIT_FILES)
		mark(w->v.flags, WAIT_FEW_FILES);
}

// What the files of a thread may take.
#define FILES_MOST (sizeof(((struct file_work *)0)->files) + sizeof(((struct file_work *)0)->socks))
_Static_assert(sizeof(((struct wait_work *)0)->futex) <= FILES_MOST, "record_wait.h");

// put_files writes both arrays.
static __noinline long put_files(struct sink *s, struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 n = f->n, k = f->sockets;
	if (!n)
		return 0;
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
