//go:build ignore
// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Programs of the tests alone: a CPU spins in the kernel for as long as its slot says,
// with preemption off, with interrupts off, or inside an interrupt.
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "kfunc.h"

char _license[] SEC("license") = "GPL";

// ns: how long, written by the test before; 0: not at all. began, ended: the clock,
// written by the CPU.
struct spin { u64 ns, began, ended; };
const struct spin *unused_spin __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024); // CPUs
	__type(key, u32);
	__type(value, struct spin);
} spins SEC(".maps");

static __always_inline struct spin *mine(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	return bpf_map_lookup_elem(&spins, &cpu);
}

// spin spins once: the slot is empty afterwards. A level of turns is seconds, two are
// without end.
static __always_inline int spin(struct spin *s)
{
	u64 now = bpf_ktime_get_ns(), until = now + s->ns;
	s->ns = 0;
	s->began = now;
	turns(TURNS_MOST) {
		turns(TURNS_MOST) {
			now = bpf_ktime_get_ns();
			if (now >= until)
				break;
		}
		if (now >= until)
			break;
	}
	s->ended = now;
	return 0;
}

SEC("syscall")
int spin_preemptoff(void *ctx)
{
	struct spin *s = mine();
	if (!s || !s->ns)
		return 1;
	bpf_preempt_disable();
	spin(s);
	bpf_preempt_enable();
	return 0;
}

SEC("syscall")
int spin_irqoff(void *ctx)
{
	unsigned long flags;
	struct spin *s = mine();
	if (!s || !s->ns)
		return 1;
	bpf_local_irq_save(&flags);
	spin(s);
	bpf_local_irq_restore(&flags);
	return 0;
}

// A clock's interrupt, which the test has asked for on this CPU.
SEC("perf_event")
int spin_interrupt(void *ctx)
{
	struct spin *s = mine();
	if (s && s->ns)
		spin(s);
	return 0;
}
