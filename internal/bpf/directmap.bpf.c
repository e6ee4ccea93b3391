//go:build ignore
// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Programs that the loader finds the kernel's map of all memory with, while the
// machine runs: both are iterators over the loader's own thread, so that its page
// tables are the ones they begin at.
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "shared.h"
#include "kernelword.h"
#include "ram.h"
#include "usermem.h"

char _license[] SEC("license") = "GPL";

enum { ASKED = 512 };

// What is asked for, and the answers. Written by the loader, then by the program
// that it runs; Go's side is directmap_ask.go, a test holds them together.
struct ask {
	u64 pgd; // the loader's own
	u32 n, unused;
	struct user_memory mem;
	u64 addr[ASKED];  // in: peek: of a word of the kernel's; walk: of a byte of our own
	u64 value[ASKED]; // out: the word; walk: the word at that byte
	u32 why[ASKED];   // out: 0 there; peek: 1 cannot be read; walk: enum page_why
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ask);
} asks SEC(".maps");

static long peek_one(u32 i, struct ask **ask)
{
	struct ask *a = *ask;
	u64 n = i;
	hide(n);
	n &= ASKED - 1;
	a->why[n] = bpf_probe_read_kernel(&a->value[n], 8, (void *)a->addr[n]) != 0;
	return 0;
}

static long walk_one(u32 i, struct ask **ask)
{
	struct ask *a = *ask;
	u64 n = i;
	hide(n);
	n &= ASKED - 1;
	a->value[n] = 0;
	u64 at = user_at(&a->mem, a->addr[n]);
	a->why[n] = at ? PAGE_THERE : a->mem.why;
	if (at && bpf_probe_read_kernel(&a->value[n], 8, (void *)at))
		a->why[n] = PAGE_REFUSED;
	return 0;
}

static __always_inline struct ask *asked(struct bpf_iter__task *ctx)
{
	u32 zero = 0;
	struct task_struct *t = ctx->task;
	struct ask *a = bpf_map_lookup_elem(&asks, &zero);
	if (!t || !a || !t->mm || t->mm != ((struct task_struct *)bpf_get_current_task_btf())->mm)
		return 0;
	user_forget(&a->mem);
	user_of(&a->mem, t->mm);
	a->pgd = a->mem.pgd;
	return a;
}

SEC("iter/task")
int peek_words(struct bpf_iter__task *ctx)
{
	struct ask *a = asked(ctx);
	if (a)
		bpf_loop(a->n, peek_one, &a, 0);
	return 0;
}

SEC("iter/task")
int walk_pages(struct bpf_iter__task *ctx)
{
	struct ask *a = asked(ctx);
	if (a)
		bpf_loop(a->n, walk_one, &a, 0);
	return 0;
}
