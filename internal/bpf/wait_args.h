// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What a call says of all its descriptors: how its timeout is given, the range of a file lock,
// the arguments that i386's socketcall has in memory.
#ifndef STACKSHOT_WAIT_ARGS_H
#define STACKSHOT_WAIT_ARGS_H

// Commands of fcntl(2) that wait. The 64-bit one is of the 32-bit ABIs alone.
enum { F_SETLKW_ = 7, F_SETLKW64_ = 14, F_OFD_SETLKW_ = 38 };

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

// ask has the first n addresses of f->va read, and then the phase that uses them.
static __always_inline void ask(struct file_work *f, u32 n, u32 then)
{
	f->got = f->miss = 0;
	f->asked = n, f->then = then;
	f->phase = PHASE_READ;
}

// ask_lock asks for struct flock: l_type, l_whence, l_start, l_len. The old one of 32 bits has
// short numbers; that with long ones has no padding on i386.
static __always_inline void ask_lock(struct file_work *f)
{
	u32 cmd = f->arg[1], at = 8;
	if (cmd == F_OFD_SETLKW_)
		f->op = FILE_OP_OFD;
	else if (cmd == F_SETLKW_ || (f->compat && cmd == F_SETLKW64_))
		f->op = FILE_OP_POSIX;
	else
		return;
#if defined(__TARGET_ARCH_x86)
	if (f->compat)
		at = 4;
#endif
	if (f->compat && cmd == F_SETLKW_)
		at = 4;
	u64 va = f->arg[2];
	f->va[0] = va, f->va[1] = va + at, f->va[2] = va + at + 4, f->va[3] = va + at + 8, f->va[4] = va + at + 12;
	ask(f, f->compat && cmd == F_SETLKW_ ? 3 : 5, PHASE_LOCK);
}

static __always_inline void take_lock(struct file_work *f)
{
	f->phase = PHASE_NEXT;
	if (f->miss) {
		mark(f->flags, FILE_NO_SET);
		return;
	}
	f->lock_how = f->half[0];
	f->lock_start = f->half[1] | f->half[2] << 32, f->lock_len = f->half[3] | f->half[4] << 32;
	if (f->asked == 3)
		f->lock_start = (s64)(s32)f->half[1], f->lock_len = (s64)(s32)f->half[2];
}

// ask_socketcall asks for the first and the fifth argument.
static __always_inline void ask_socketcall(struct file_work *f)
{
	f->va[0] = f->arg[1], f->va[1] = f->arg[1] + 16;
	ask(f, 2, PHASE_SOCKETCALL);
}

// take_socketcall: without its arguments nothing is recorded of the call. The fifth is only
// of some calls.
static __always_inline void take_socketcall(struct file_work *f)
{
	u64 n = f->arg[0], first = f->half[0], fifth = f->half[1];
	hide(n);
	f->phase = PHASE_NEXT;
	f->way = WAY_NONE;
	if (n >= 32 || f->miss)
		return;
	f->arg[0] = first, f->arg[4] = fifth;
	set_call(f, &cfg_socketcalls[n]);
}

#endif
