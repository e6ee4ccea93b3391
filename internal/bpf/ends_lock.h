// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Who has locks on a file, by the file's own lists of locks: /proc/locks names nobody for
// locks of an open file description, and for flock(2) who took it, maybe long gone. The
// lists are walked without their lock, so with a bound and a check of each link.
#ifndef STACKSHOT_ENDS_LOCK_H
#define STACKSHOT_ENDS_LOCK_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct file_lock_context___e { struct list_head flc_flock, flc_posix; };
struct file_lock_core___e { struct list_head flc_list; void *flc_owner, *flc_file; u32 flc_flags; }; // since 6.9
struct file_lock___e { struct list_head fl_list; void *fl_owner, *fl_file; u32 fl_flags; };
#pragma clang attribute pop

enum { LOCKS_LONG = 128, OFD_LOCK = 1024 }; // FL_OFDLCK, include/linux/filelock.h

#define lock_word(lock, core, old)                                                                  \
	(has_field(file_lock_core___e, core) ? word_of(lock, file_lock_core___e, core) :                \
	 has_field(file_lock___e, old) ? word_of(lock, file_lock___e, old) : 0)

// lock_of: a lock by its place in the list. struct file_lock begins with its core.
static __always_inline u64 lock_of(u64 node)
{
	return has_field(file_lock_core___e, flc_list) ? node - place_of(file_lock_core___e, flc_list) :
		has_field(file_lock___e, fl_list) ? node - place_of(file_lock___e, fl_list) : 0;
}

// has_lock: a POSIX lock belongs to a table of open files, the others to an open file.
static __always_inline u32 has_lock(struct ends_work *w, u64 lock, bool posix)
{
	if (posix && !((u32)lock_word(lock, flc_flags, fl_flags) & OFD_LOCK))
		return lock_word(lock, flc_owner, fl_owner) == w->files ? FILE_LOCK_POSIX : 0;
	if (lock_word(lock, flc_file, fl_file) != w->file)
		return 0;
	return posix ? FILE_LOCK_OFD : FILE_LOCK_FLOCK;
}

static __always_inline long one_lock(struct ends_work *w, bool posix)
{
	u64 node = node_here(w);
	if (!node)
		return 1;
	w->out.v.lock_kind = has_lock(w, lock_of(node), posix);
	if (w->out.v.lock_kind)
		return 1;
	go_on(w, node);
	return 0;
}

static long one_flock(u32 i, struct ends_work **w) { return one_lock(*w, 0); }
static long one_posix(u32 i, struct ends_work **w) { return one_lock(*w, 1); }

static __always_inline bool walk_locks(struct ends_work *w, u64 head, bool posix)
{
	start_list(w, head);
	if (posix)
		bpf_loop(LOCKS_LONG, one_posix, &w, 0);
	else
		bpf_loop(LOCKS_LONG, one_flock, &w, 0);
	return w->out.v.lock_kind;
}

// lock_ends writes this file if it has a lock: of each list once.
static __noinline void lock_ends(struct ends_work *w, struct bpf_iter__task_file *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	start_key(w, BY_FILE);
	w->key.local[0] = w->s.dev, w->key.local[1] = w->s.inode;
	struct end_wanted *m = find(w);
	u64 locks = m ? word_of(w->s.inode_at, inode___k, i_flctx) : 0;
	if (!locks)
		return;
	begin_end(w, ctx);
	if (walk_locks(w, locks + place_of(file_lock_context___e, flc_flock), 0))
		put_end(w, m, seq, END_LOCKS);
	if (walk_locks(w, locks + place_of(file_lock_context___e, flc_posix), 1))
		put_end(w, m, seq, END_LOCKS);
}

#endif
