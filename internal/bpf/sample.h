// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What runs on a CPU that was not stopped. Only that CPU itself can unwind its
// running thread, from an interrupt of its own: a perf event there enters this
// program. It writes a sample only if one was asked for (wanted), once each time.
#ifndef STACKSHOT_SAMPLE_H
#define STACKSHOT_SAMPLE_H

// Frames of each of the two stacks: the kernel's default limit.
#define SAMPLE_FRAMES 127

// States of cpu_sample.wanted. The loader's side takes NONE or DONE to WANTED,
// and back from WANTED when it has waited enough; the program takes WANTED to
// CLAIMED to DONE. Between CLAIMED and DONE the rest is the program's, at any
// other time the loader's.
enum sample_state { SAMPLE_NONE, SAMPLE_WANTED, SAMPLE_CLAIMED, SAMPLE_DONE };

enum sample_flag { SAMPLE_USER = 1, SAMPLE_IDLE = 2 };

// One per possible CPU. Go's side (shared.go) is generated from it.
struct cpu_sample {
	u32 wanted;
	u32 tid, tgid; // as our pid namespace counts; 0: not visible there, or idle
	u32 flags;
	s32 kernel_bytes, user_bytes; // of the two stacks; negative: an errno
	u32 pad0[2];
	u8 comm[16];
	u64 at_ns, ip;
	u64 pad1[10]; // to 17 * 128 bytes: two CPUs never share a line pair
	u64 kernel[SAMPLE_FRAMES], user[SAMPLE_FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_sample);
} samples SEC(".maps");

// The context of a perf_event program (include/uapi/linux/bpf_perf_event.h):
// the interrupted registers in the order of the architecture's user ABI. It is
// ABI, so its offsets are constants and not moved.
#if defined(__TARGET_ARCH_x86)
struct sample_ctx { u64 regs[21], period, addr; };
static __always_inline u64 sampled_ip(struct sample_ctx *c) { return c->regs[16]; }
static __always_inline bool sampled_user(struct sample_ctx *c) { return (c->regs[17] & 3) == 3; } // cs
#else
struct sample_ctx { u64 regs[34], period, addr; };
static __always_inline u64 sampled_ip(struct sample_ctx *c) { return c->regs[32]; }
static __always_inline bool sampled_user(struct sample_ctx *c) { return (c->regs[33] & 0xf) == 0; } // pstate, EL0t
#endif

#define SAMPLE_USER_STACK (1ull << 8) // BPF_F_USER_STACK

static __always_inline void fill_sample(struct cpu_sample *s, struct sample_ctx *ctx, struct task_struct *t, u32 level)
{
	s->tid = tid_in(t, level);
	s->tgid = tgid_in(t, level);
	s->flags = 0;
	if (!t->pid)
		s->flags = SAMPLE_IDLE;
	else if (sampled_user(ctx))
		s->flags = SAMPLE_USER;
	__builtin_memcpy(s->comm, t->comm, 16);
	s->at_ns = bpf_ktime_get_ns();
	s->ip = sampled_ip(ctx);
	s->kernel_bytes = bpf_get_stack(ctx, s->kernel, sizeof(s->kernel), 0);
	s->user_bytes = 0;
	if (!cfg_redact && t->pid)
		s->user_bytes = bpf_get_stack(ctx, s->user, sizeof(s->user), SAMPLE_USER_STACK);
}

// sample_cpu writes down the thread that the event interrupted. Our own thread
// that asks for samples is not what anybody wants to see: the next tick may
// find another.
static __always_inline void sample_cpu(struct sample_ctx *ctx, struct control *c)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_sample *s = bpf_map_lookup_elem(&samples, &cpu);
	struct task_struct *t = bpf_get_current_task_btf();
	u32 level = c->ns_level;

	if (!s || tgid_in(t, level) == cfg_self_tgid)
		return;
	if (__sync_val_compare_and_swap(&s->wanted, SAMPLE_WANTED, SAMPLE_CLAIMED) != SAMPLE_WANTED)
		return;
	fill_sample(s, ctx, t, level);
	__sync_lock_test_and_set(&s->wanted, SAMPLE_DONE);
}

#endif
