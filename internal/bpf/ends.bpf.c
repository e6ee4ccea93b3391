//go:build ignore
// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The pass over all open files of the machine, after the release: who has the other ends of
// what threads wait for. Ordinary iterators: nothing is stopped, and the machine goes on
// meanwhile. The kernel holds each file and each task while the program looks at it; what
// those lead to may go away at any time, so it is read where it may be missing.
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "kcdata.h"
#include "shared.h"
#include "compat.h"
#include "pid.h"
#include "kernelword.h"
#include "file_kind.h"
#include "ends_file.h"
#include "ends_types.h"
#include "ends_list.h"
#include "ends_out.h"
#include "ends_pipe.h"
#include "ends_socket.h"
#include "ends_room.h"
#include "ends_lock.h"
#include "ends_fuse.h"
#include "ends_thread.h"

char _license[] SEC("license") = "GPL";

// The object's type information has what Go's side is held against (ends_layout_test.go).
struct all_ends {
	struct ends_ask ask;
	struct end_key key;
	struct end_wanted wanted;
	struct thread_key thread_key;
	struct thread_asked thread_asked;
	struct linux_end linux_end;
	struct linux_fuse linux_fuse;
	enum end_flags end_flags;
	enum fuse_flags fuse_flags;
	enum file_lock_kind lock_kind;
	enum end_by by;
	enum ends_asks asks;
	enum thread_flags thread_flags;
	enum outs outs;
};
const struct all_ends *unused_ends __attribute__((unused));

static __always_inline bool time_over(struct ends_ask *a, u32 at)
{
	if ((at & 15) == 0 && bpf_ktime_get_ns() >= a->deadline)
		a->time_up = 1;
	return a->time_up;
}

// Files that are waited for only for their locks: most descriptors of a machine.
static __always_inline bool only_locks(u32 kind)
{
	return kind == FILE_REGULAR || kind == FILE_DIRECTORY || kind == FILE_BLOCK;
}

static __noinline void userfaultfd_ends(struct ends_work *w, struct ends_ask *a, struct seq_file *seq)
{
	u64 mm = w->s.object && has_field(userfaultfd_ctx___e, mm) ? word_of(w->s.object, userfaultfd_ctx___e, mm) : 0;
	w->out.v.peer = mm;
	if (mm && has_field(mm_struct___e, owner)) // CONFIG_MEMCG
		w->out.v.backlog = tgid_at(word_of(mm, mm_struct___e, owner));
	if (a->flags & ASK_USERFAULTFD)
		put_server(w, seq);
	else
		put_end(w, find_word(w, BY_OBJECT, w->s.object), seq, END_SERVES);
}

static __noinline void socket_ends(struct ends_work *w, struct ends_ask *a, struct bpf_iter__task_file *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	if (!may_match(w, a) && !room_wanted(w, a))
		return;
	begin_end(w, ctx);
	see_socket(w);
	put_end(w, find_word(w, BY_OBJECT, w->s.object), seq, 0);
	if (w->out.v.family == UNIX) {
		unix_ends(w, seq);
		room_ends(w, a, seq);
	} else if ((a->flags & ASK_INET) && (w->out.v.family == INET || w->out.v.family == INET6)) {
		inet_ends(w, seq);
	}
}

// plain_ends: of what is found by its object alone.
static __noinline void plain_ends(struct ends_work *w, struct bpf_iter__task_file *ctx)
{
	struct end_wanted *m = find_word(w, BY_OBJECT, w->s.object);
	if (!m)
		return;
	begin_end(w, ctx);
	if (w->s.kind == FILE_PIPE || w->s.kind == FILE_FIFO)
		pipe_bytes(w);
	put_end(w, m, ctx->meta->seq, 0);
}

static __noinline void ends_of(struct ends_work *w, struct ends_ask *a, struct bpf_iter__task_file *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	u32 kind = w->s.kind;
	if ((a->flags & ASK_LOCKS) && kind != FILE_SOCKET && w->s.magic != MAGIC_ANON)
		lock_ends(w, ctx);
	if (only_locks(kind))
		return;
	if (kind != FILE_SOCKET && kind != FILE_FUSE && kind != FILE_USERFAULTFD) {
		plain_ends(w, ctx);
		return;
	}
	if (kind == FILE_SOCKET) {
		socket_ends(w, a, ctx);
		return;
	}
	begin_end(w, ctx);
	if (kind == FILE_FUSE)
		fuse_ends(w, seq);
	else
		userfaultfd_ends(w, a, seq);
}

// A return of 1 ends the read that shows this file, and the next begins with it again.
SEC("iter/task_file")
int look_at_files(struct bpf_iter__task_file *ctx)
{
	struct ends_ask *a = the_ask();
	struct ends_work *w = the_work();
	struct file *file = ctx->file;
	if (!a || !w || !file || !ctx->task)
		return 0;
	if (time_over(a, a->looked))
		return 1;
	w->file = (u64)file;
	see_file(&w->s, file);
	if (!has_room(ctx->meta->seq, w->s.kind == FILE_SOCKET || w->s.kind == FILE_FUSE ? ROOM_MOST : ROOM_MORE))
		return 1;
	a->looked++;
	ends_of(w, a, ctx);
	return 0;
}

SEC("iter/task")
int look_at_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct ends_ask *a = the_ask();
	if (!t || !a)
		return 0;
	if (time_over(a, a->tasks))
		return 1;
	a->tasks++;
	look_at_thread(t);
	return 0;
}

#ifdef STACKSHOT_TEST
// Shows every file as an end, wanted or not.
SEC("iter/task_file")
int list_files(struct bpf_iter__task_file *ctx)
{
	struct ends_work *w = the_work();
	struct file *file = ctx->file;
	if (!w || !file || !ctx->task)
		return 0;
	w->file = (u64)file;
	see_file(&w->s, file);
	begin_end(w, ctx);
	if (w->s.kind == FILE_SOCKET)
		see_socket(w);
	w->out.what = OUT_END;
	w->out.index = NO_INDEX;
	bpf_seq_write(ctx->meta->seq, &w->out, sizeof(w->out));
	return 0;
}
#endif
