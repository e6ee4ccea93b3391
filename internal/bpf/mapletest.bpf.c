//go:build ignore
// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Programs of the tests alone: what maple.h finds at addresses that they choose, in
// this process's tree and in trees that they made up; what usermem.h finds by page
// tables that they made up; what wait_scan.h finds in stacks that they made up.
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "shared.h"
#include "kfunc.h"
#include "kernelhalf.h"
#include "kcdata.h"
#include "knobs.h"
#include "compat.h"
#include "sink_seq.h"
#include "kernelword.h"
#include "ram.h"
#include "maple.h"
#include "usermem.h"
#include "mapped_path.h"
#include "wait_call.h"
#include "wait_work.h"
#include "wait_owner.h"
#include "wait_scan.h"
#include "file_kind.h"
#include "wait_socket.h"
#include "wait_device.h"
#include "wait_object.h"
#include "wait_args.h"
#include "wait_sets.h"
#include "wait_file.h"

char _license[] SEC("license") = "GPL";

const volatile u32 cfg_asked;  // of answers
const volatile u32 cfg_forget; // the leaf, before each

// addr: the test's; the rest: the program's. start, end: 0: no mapping.
struct answer { u64 addr, start, end, flags, stack_end; };
const struct answer *unused_answer __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct answer);
} answers SEC(".maps");

struct asking { struct mm_struct *mm; };

static long answer_one(u32 i, struct asking *q)
{
	struct answer *a = bpf_map_lookup_elem(&answers, &i);
	struct maple *m = the_maple();
	if (!a || !m)
		return 1;
	a->start = a->end = a->flags = 0;
	if (cfg_forget)
		forget_leaf();
	a->stack_end = stack_end(q->mm, a->addr);
	if (cfg_forget)
		forget_leaf();
	if (vma_at(m, q->mm, a->addr))
		a->start = vma_word(m, vm_start), a->end = vma_word(m, vm_end), a->flags = vma_word(m, vm_flags);
	return 0;
}

SEC("iter/task")
int find_vmas(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	if (!t || t->pid != t->tgid)
		return 0;
	struct asking q = { .mm = t->mm };
	if (q.mm)
		bpf_loop(cfg_asked, answer_one, &q, 0);
	return 0;
}

static long half_one(u32 i, void *unused)
{
	struct answer *a = bpf_map_lookup_elem(&answers, &i);
	if (!a)
		return 1;
	struct task_struct *t = bpf_rdonly_cast((void *)a->addr, bpf_core_type_id_kernel(struct task_struct));
	a->start = kernel_half(a->addr);
	a->end = kernels(t);
	return 0;
}

// find_halves says of each addr whether it is the kernel's: in start as a number, in
// end as a pointer.
SEC("iter/task")
int find_halves(struct bpf_iter__task *ctx)
{
	if (ctx->task)
		bpf_loop(cfg_asked, half_one, 0, 0);
	return 0;
}

// A tree, or page tables, that the test made up. addr, mm, root (the first of page
// tables): the test's; the rest: the program's.
// copy: the test's bytes, in memory that is not of the map of all memory (vmalloc).
struct forged {
	u64 addr, mm, root;
	u64 start, inode;
	u32 device, refused, flags, pos;
	char path[MAPPED_PATH];
	u64 copy_at;
	u64 word; // walk_forged: at addr
	u32 why, unused;
	struct user_memory mem;
};
const struct forged *unused_forged __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct forged);
} forgeries SEC(".maps");

struct copy { u64 word[512]; };
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct copy);
} copies SEC(".maps");

SEC("iter/task")
int find_forged(struct bpf_iter__task *ctx)
{
	u32 zero = 0;
	struct forged *f = bpf_map_lookup_elem(&forgeries, &zero);
	struct copy *c = bpf_map_lookup_elem(&copies, &zero);
	struct maple *m = the_maple();
	struct task_struct *t = ctx->task;
	if (!f || !c || !m || !t || t->pid != t->tgid)
		return 0;
	f->copy_at = (u64)c;
	f->start = f->inode = f->device = f->flags = f->pos = 0;
	m->mm = f->mm, m->root = f->root;
	m->vdso = m->refused = m->tree = 0;
	if (maple_find(m, f->addr) && load_vma(m) && load_file(m)) {
		f->start = vma_word(m, vm_start);
		path_of(m);
		f->inode = m->inode, f->device = m->device, f->flags = m->flags, f->pos = m->pos;
		bpf_probe_read_kernel(f->path, sizeof(f->path), m->path);
	}
	f->refused = m->refused;
	return 0;
}

// walk_forged reads a word by page tables that the test made up.
SEC("iter/task")
int walk_forged(struct bpf_iter__task *ctx)
{
	u32 zero = 0;
	struct forged *f = bpf_map_lookup_elem(&forgeries, &zero);
	struct task_struct *t = ctx->task;
	if (!f || !t || t->pid != t->tgid)
		return 0;
	f->word = 0;
	__builtin_memset(&f->mem, 0, sizeof(f->mem));
	f->mem.pgd = f->root;
	u64 at = user_at(&f->mem, f->addr);
	f->why = at ? PAGE_THERE : f->mem.why;
	if (at && bpf_probe_read_kernel(&f->word, 8, (void *)at))
		f->why = PAGE_REFUSED;
	return 0;
}

// A kernel stack that the test made up, of a thread that sleeps at sp, and what the scan
// makes of it.
struct forged_stack {
	u64 sp, task, stack_at, stack_size;
	u64 stack[SCAN_WORDS];
	struct linux_wait v;
};
const struct forged_stack *unused_forged_stack __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct forged_stack);
} forged_stacks SEC(".maps");

SEC("iter/task")
int scan_forged(struct bpf_iter__task *ctx)
{
	u32 zero = 0;
	struct forged_stack *f = bpf_map_lookup_elem(&forged_stacks, &zero);
	struct wait_work *w = my_wait_work();
	struct task_struct *t = ctx->task;
	struct sink s = {};
	if (!f || !w || !t || t->pid != t->tgid)
		return 0;
	forget_waits();
	__builtin_memset(&w->v, 0, sizeof(w->v));
	w->sp = f->sp, w->task = f->task, w->stack_at = f->stack_at, w->stack_size = f->stack_size;
	w->words = SCAN_WORDS;
	w->rest = 0;
	bpf_probe_read_kernel(w->stack, sizeof(w->stack), f->stack);
	scan_stack(&s, w);
	wait_owner(w, 0);
	f->v = w->v;
	return 0;
}

// An open file that the test made up, or a table of files, or with way an epoll's tree, and what
// is recorded of it.
struct forged_open {
	u64 file, files, fd, way, node, n;
	struct linux_file v;
	struct linux_socket s;
};
const struct forged_open *unused_forged_open __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct forged_open);
} forged_files SEC(".maps");

SEC("iter/task")
int look_forged(struct bpf_iter__task *ctx)
{
	u32 zero = 0;
	struct forged_open *a = bpf_map_lookup_elem(&forged_files, &zero);
	struct wait_work *w = my_wait_work();
	struct task_struct *t = ctx->task;
	struct sink s = {};
	if (!a || !w || !t || t->pid != t->tgid)
		return 0;
	struct file_work *f = &w->f;
	forget_waits();
	f->n = f->sockets = f->count = f->turn = f->from = f->flags = f->ends = 0;
	f->op = FILE_OP_READ, f->way = a->way, f->node = a->node;
	f->file = a->file;
	f->phase = a->way ? PHASE_NEXT : PHASE_FILE;
	f->fd = a->fd, f->events = 0;
	file_table(w, a->files);
	begin_file(w);
	file_turns(8192, &s, w);
	a->n = f->n;
	a->v = f->files.v[0];
	a->s = f->socks.v[0];
	return 0;
}
