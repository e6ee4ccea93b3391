//go:build ignore
// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The record code inside a dying kernel: one body, entered where the kernel handles a SysRq
// and where it panics. It records all threads into one run of memory that a crash dump
// has. Alone on its CPU, it waits for nobody, and leaves at its own deadline.
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "kfunc.h"
#include "kernelhalf.h"
#include "kcdata.h"
#define STACKSHOT_ALL_MAPS // no /proc will answer later
#include "knobs.h"
#include "compat.h"
#include "shared.h"
#include "fetch.h"
#include "maps.h"
#include "region.h"
#include "pid.h"
#include "stop_word.h"
#include "panic.h"
#include "sink_line.h"
#include "ram.h"
#include "maple.h"
#include "mapped_path.h"
#include "record_maps.h"
#include "record_task.h"
#include "record_thread.h"
#include "usermem.h"
#include "record_user.h"
#include "record_cmdline.h"
#include "wait_call.h"
#include "wait_work.h"
#include "wait_lock.h"
#include "wait_owner.h"
#include "wait_scan.h"
#include "wait_futex.h"
#include "file_kind.h"
#include "wait_socket.h"
#include "wait_device.h"
#include "wait_object.h"
#include "wait_args.h"
#include "wait_sets.h"
#include "wait_file.h"
#include "wait_begin.h"
#include "record_wait.h"
#include "record_more.h"
#include "panic_walk.h"
#include "panic_message.h"

char _license[] SEC("license") = "GPL";

// count_up: its result is used, so that it is no plain add (docs/concurrency.md).
static __noinline void count_up(u64 *n)
{
	u64 was = __sync_fetch_and_add(n, 1);
	hide(was);
}

// take_region makes the region this walk's. A SysRq waits until the process has saved what
// the last one left. A panic does not wait: it takes that too, and counts it as lost.
static __noinline int take_region(struct panic_run *r, u32 hook)
{
	if (__sync_val_compare_and_swap(&r->state, PANIC_FREE, PANIC_TAKEN) == PANIC_FREE)
		return 1;
	if (hook != HOOK_SYSRQ && __sync_val_compare_and_swap(&r->state, PANIC_DONE, PANIC_TAKEN) == PANIC_DONE) {
		count_up(&r->lost);
		return 1;
	}
	count_up(&r->nested);
	return 0;
}

// end_stop tells a capture that holds CPUs to let go of them: its workers read the phase in
// each of their loops, and leave with interrupts on, so that the kernel finds its CPUs.
// A swap fails only when another one succeeds.
static __noinline int end_stop(struct stop *s)
{
	turns(64) {
		u64 old = peek(s->word), p = phase_of(old);
		if (p != PHASE_ARRIVING && p != PHASE_COMMITTED && p != PHASE_DRAINED)
			return 0;
		if (swapped(s, old, with_phase(old, PHASE_PANICKED)))
			return 1;
	}
	return 0;
}

// end_stops does so for all captures, and returns how many it told. It keeps nothing in
// memory: another CPU may be walking.
static __noinline u32 end_stops(void)
{
	u32 told = 0;
	for (u32 i = 0; i < LIVE_STOPS; i++) {
		u32 slot = i, zero = 0;
		void *inner = bpf_map_lookup_elem(&panic_live, &slot);
		struct stop *s = inner ? bpf_map_lookup_elem(inner, &zero) : 0;
		if (s)
			told += end_stop(s);
	}
	return told;
}

static __always_inline void begin_walk(struct panic_run *r, u32 hook)
{
	struct task_struct *me = bpf_get_current_task_btf();
	r->outcome = PANIC_IN_PROGRESS;
	r->hook = hook;
	r->bytes = r->open = 0;
	r->tasks = r->threads = r->idle = r->texts = r->followed = 0;
	r->key = r->checked = r->live = r->level = 0;
	r->ended = r->sum = r->caller = 0;
	r->began = bpf_ktime_get_ns();
	r->began_boot = bpf_ktime_get_boot_ns();
	r->cpu = bpf_get_smp_processor_id();
	r->tid = me->pid, r->tgid = me->tgid;
	__builtin_memcpy(r->comm, me->comm, 16);
	__builtin_memset(r->args, 0, sizeof(r->args));
	__builtin_memset(r->format, 0, sizeof(r->format));
	__builtin_memset(r->text, 0, sizeof(r->text));
}

// end_walk: the outcome and the sum come before the state, by which the process knows that
// all is there.
static __noinline void end_walk(struct panic_run *r, struct panic_work *w, u32 outcome)
{
	r->ended = bpf_ktime_get_ns();
	r->outcome = outcome;
	sum_run(r, w);
	u64 next = r->hook == HOOK_SYSRQ ? PANIC_DONE : PANIC_LEFT;
	hide(next); // one exchange
	next = __sync_lock_test_and_set(&r->state, next);
	hide(next);
}

// record_all is the walk with preemption off, and interrupts where the kernel lets it.
static __always_inline void record_all(struct panic_run *r, struct panic_work *w)
{
	struct sink to = { .w = w };
	unsigned long flags = 0;
	if (have(bpf_preempt_disable)) {
		bpf_preempt_disable();
		r->level = 1;
	}
	if (have(bpf_local_irq_save)) {
		bpf_local_irq_save(&flags);
		r->level = 3;
	}
	w->deadline = r->began + cfg_panic_pause;
	u32 outcome = walk(&to, r);
	if (r->hook != HOOK_SYSRQ) // a capture may have begun on another CPU meanwhile
		r->live += end_stops();
	end_walk(r, w, outcome);
	if (have(bpf_local_irq_save))
		bpf_local_irq_restore(&flags);
	if (have(bpf_preempt_disable))
		bpf_preempt_enable();
}

// sysrq_allowed says whether the kernel's own mask lets a dump through: this hook comes before
// the kernel asks (drivers/tty/sysrq.c, __handle_sysrq; SYSRQ_ENABLE_DUMP is 8).
static __always_inline bool sysrq_allowed(struct panic_ask *a, u64 check)
{
	u32 mask = peek(a->mask);
	if (!(check & 0xff) || mask == 1 || (mask & 8))
		return 1;
	count_up(&a->refused);
	return 0;
}

static __always_inline struct panic_ask *asked_for(u64 key, u64 check)
{
	u32 zero = 0;
	struct panic_ask *a = bpf_map_lookup_elem(&panic_asks, &zero);
	if (!a || (key & 0xff) != cfg_sysrq_key || !sysrq_allowed(a, check))
		return 0;
	count_up(&a->asked);
	return a;
}

static __always_inline void wake(u32 key)
{
	bpf_ringbuf_output(&panic_rings, &key, sizeof(key), BPF_RB_FORCE_WAKEUP);
}

static __always_inline int sysrq(u64 key, u64 check)
{
	struct panic_work *w = panic_work_of();
	struct panic_run *r = the_run();
	if (!r || !w || !asked_for(key, check))
		return 0;
	if (take_region(r, HOOK_SYSRQ)) {
		begin_walk(r, HOOK_SYSRQ);
		r->key = key & 0xff;
		r->checked = check & 0xff;
		record_all(r, w);
	}
	wake(key & 0xff);
	return 0;
}

// add_message: an oops of which the machine dies comes to crash_kexec first, and to panic() only
// if no crash kernel is loaded. Then the walk is over, and its head gets the message.
static __always_inline int add_message(struct panic_run *r, struct panic_work *w, u64 format, u64 *regs, u64 list)
{
	if (peek(r->state) != PANIC_LEFT || r->hook != HOOK_CRASH || r->cpu != bpf_get_smp_processor_id() || r->followed)
		return 0;
	r->followed = 1;
	note_message(r, format, regs, list);
	sum_run(r, w);
	return 1;
}

static __always_inline int panicked(u32 hook, u64 format, u64 *regs, u64 list, u64 caller)
{
	struct panic_work *w = panic_work_of();
	struct panic_run *r = the_run();
	if (!r || !w)
		return 0;
	u32 told = end_stops();
	if (hook == HOOK_PANIC && add_message(r, w, format, regs, list))
		return 0;
	if (!take_region(r, hook))
		return 0;
	begin_walk(r, hook);
	r->live = told;
	r->caller = caller;
	note_message(r, format, regs, list);
	record_all(r, w);
	return 0;
}

// __handle_sysrq(key, check_mask), drivers/tty/sysrq.c.
SEC("fentry/__handle_sysrq")
int on_sysrq(u64 *ctx) { return sysrq(ctx[0], ctx[1]); }

SEC("kprobe/__handle_sysrq")
int on_sysrq_kprobe(u64 *regs) { return sysrq(regs[PARM1], regs[PARM2]); }

// Where no program may walk the tasks (before 6.7), the key only wakes the process.
SEC("fentry/__handle_sysrq")
int on_sysrq_wake(u64 *ctx)
{
	if (asked_for(ctx[0], ctx[1]))
		wake(ctx[0] & 0xff);
	return 0;
}

// vpanic(fmt, args), kernel/panic.c, in 6.18 ("panic: introduce vpanic") and in later 6.12.y. On
// arm64 a va_list is a struct of 32 bytes, which fentry refuses.
SEC("fentry/vpanic")
int on_vpanic(u64 *ctx) { return panicked(HOOK_PANIC, ctx[0], 0, ctx[1], 0); }

SEC("kprobe/vpanic")
int on_vpanic_kprobe(u64 *regs) { return panicked(HOOK_PANIC, regs[PARM1], 0, regs[PARM2], caller_of(regs)); }

// panic(fmt, ...), which nmi_panic and the oops call where there is no vpanic: fentry is refused, since it is variadic.
SEC("kprobe/panic")
int on_panic(u64 *regs)
{
	u64 args[PANIC_ARGS];
	register_args(args, regs);
	return panicked(HOOK_PANIC, regs[PARM1], args, 0, caller_of(regs));
}

// crash_kexec(regs), kernel/crash_core.c: an oops of which the machine dies comes here first
// (oops_end of x86, die of arm64), and with a crash kernel loaded never to panic().
SEC("fentry/crash_kexec")
int on_crash(void *ctx) { return panicked(HOOK_CRASH, 0, 0, 0, 0); }

SEC("kprobe/crash_kexec")
int on_crash_kprobe(u64 *regs) { return panicked(HOOK_CRASH, 0, 0, 0, caller_of(regs)); }
