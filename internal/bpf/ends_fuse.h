// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Servers of FUSE, and the requests that they have not answered. The lists change while they
// are walked: each walk has a bound, and ends where a link does not agree with the one before.
#ifndef STACKSHOT_ENDS_FUSE_H
#define STACKSHOT_ENDS_FUSE_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct fuse_iqueue___e { struct list_head pending; };
struct fuse_pqueue___e { void *processing; struct list_head io; };
struct fuse_in_header___e { u32 opcode, pid; u64 unique, nodeid; };
struct fuse_req___e { struct list_head list; struct { struct fuse_in_header___e h; } in; };
struct fuse_conn___e { struct fuse_iqueue___e iq; void *pid_ns; u32 dev; };
struct fuse_chan___e { struct fuse_iqueue___e iq; };
struct fuse_dev___e { struct fuse_pqueue___e pq; };
#pragma clang attribute pop

enum { REQUESTS_LONG = 256, PROCESSING_LISTS = 256 }; // FUSE_PQ_HASH_SIZE

// The conn is known, so these types are.
static __always_inline u64 pending_of(struct ends_work *w)
{
	if (has_field(fuse_chan___e, iq))
		return word_of(w->s.private, fuse_dev___chan, chan) + place_of(fuse_chan___e, iq.pending);
	return has_field(fuse_conn___e, iq) ? w->conn + place_of(fuse_conn___e, iq.pending) : 0;
}

static __always_inline void put_request(struct walk *walk, u64 req)
{
	struct ends_work *w = walk->w;
	struct linux_fuse *v = &w->fuse.v;
	u64 in = req + place_of(fuse_req___e, in.h);
	v->unique = word_of(in, fuse_in_header___e, unique);
	v->node = word_of(in, fuse_in_header___e, nodeid);
	v->opcode = word_of(in, fuse_in_header___e, opcode);
	v->tid = word_of(in, fuse_in_header___e, pid);
	v->flags = w->fuse_flags;
	if (v->tid && word_of(w->conn, fuse_conn___e, pid_ns) != w->level_ns)
		v->flags |= FUSE_FOREIGN;
	bpf_seq_write(walk->seq, &w->fuse, sizeof(w->fuse));
	w->requests++;
}

static long one_request(u32 i, struct walk *walk)
{
	struct ends_work *w = walk->w;
	u64 node = node_here(w);
	if (!node || w->requests >= REQUESTS_LONG)
		return 1;
	put_request(walk, node - place_of(fuse_req___e, list));
	go_on(w, node);
	return 0;
}

static __always_inline void walk_requests(struct walk *walk, u64 head)
{
	struct ends_work *w = walk->w;
	start_list(w, head);
	if (head && w->at != head)
		bpf_loop(REQUESTS_LONG, one_request, walk, 0);
}

static long one_list(u32 i, struct walk *walk)
{
	walk_requests(walk, walk->w->lists + i * sizeof(u64) * 2);
	return 0;
}

// first says whether this connection, or device, is met for the first time in this pass.
static __always_inline bool first(u64 at)
{
	u32 one = 1;
	if (bpf_map_lookup_elem(&served, &at))
		return 0;
	bpf_map_update_elem(&served, &at, &one, 0);
	return 1;
}

// The recorded pid namespace, by its address: that of whom the iterator runs for.
static __always_inline u64 own_pid_ns(void)
{
	struct task_struct *me = bpf_get_current_task_btf();
	u64 pid = word_of((u64)me, task_struct___e, thread_pid);
	u64 upid = upid_of(pid);
	return upid ? word_of(upid, upid, ns) : 0;
}

static __noinline void fuse_requests(struct ends_work *w, struct seq_file *seq)
{
	struct walk walk = { w, seq };
	w->level_ns = own_pid_ns();
	u64 dev = w->s.private;
	if (!has_field(fuse_req___e, in.h) || !has_field(fuse_dev___e, pq.processing))
		return;
	w->requests = 0;
	w->fuse_flags = 0;
	if (first(w->conn))
		walk_requests(&walk, pending_of(w));
	if (!first(dev))
		return;
	w->fuse_flags = FUSE_SENT;
	walk_requests(&walk, dev + place_of(fuse_dev___e, pq.io));
	w->lists = word_of(dev, fuse_dev___e, pq.processing);
	if (w->lists)
		bpf_loop(PROCESSING_LISTS, one_list, &walk, 0);
}

// fuse_ends writes every server, wanted or not: who waits for one has mostly no descriptor.
static __noinline void fuse_ends(struct ends_work *w, struct seq_file *seq)
{
	w->conn = w->s.object;
	if (w->conn && has_field(fuse_conn___e, dev)) {
		__builtin_memset(&w->fuse, 0, sizeof(w->fuse));
		w->fuse.what = OUT_FUSE;
		w->fuse.v.conn = w->conn;
		w->fuse.v.dev = w->out.v.dev = dev_of(word_of(w->conn, fuse_conn___e, dev));
		fuse_requests(w, seq);
	}
	put_server(w, seq);
}

#endif
