// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Writing one end. If a write does not fit, the iterator forgets all that was written of this
// file and shows it once more; so a file is begun only if there is room for all of it.
#ifndef STACKSHOT_ENDS_OUT_H
#define STACKSHOT_ENDS_OUT_H

static __always_inline struct ends_ask *the_ask(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&asks, &zero);
}

static __always_inline struct ends_work *the_work(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&works, &zero);
}

// upid_of is where a struct pid keeps its number of the recorded namespace; 0: it has none there.
static __always_inline u64 upid_of(u64 pid)
{
	if (!pid || (u32)word_of(pid, pid, level) < cfg_level)
		return 0;
	return pid + bpf_core_field_offset(((struct pid *)0)->numbers) + (u64)cfg_level * bpf_core_type_size(struct upid);
}

// nr_at is nr_of for a struct pid by its address.
static __always_inline u32 nr_at(u64 pid)
{
	u64 upid = upid_of(pid);
	return upid ? word_of(upid, upid, nr) : 0;
}

// tgid_at: the process of a task by its address, in the recorded pid namespace.
static __always_inline u32 tgid_at(u64 task)
{
	u64 leader = task ? word_of(task, task_struct___e, group_leader) : 0;
	return leader ? nr_at(word_of(leader, task_struct___e, thread_pid)) : 0;
}

// refs_of leaves out the iterator's own reference. file_ref_t counts from -1 ("fs: add
// file_ref", in 6.13).
static __always_inline u32 refs_of(u64 file)
{
	s64 n = 0;
	if (has_field(file___ref, f_ref))
		n = word_of(file, file___ref, f_ref) + 1;
	else if (has_field(file___count, f_count))
		n = word_of(file, file___count, f_count);
	return n > 0 ? n - 1 : 0;
}

// Of a file that is a server of FUSE or a listening socket, and of any other.
enum { ROOM_MOST = 20 << 10, ROOM_MORE = 1 << 10 };

static __always_inline bool has_room(struct seq_file *seq, u64 most)
{
	return word_of((u64)seq, seq_file___e, size) - word_of((u64)seq, seq_file___e, count) > most;
}

// begin_end fills what does not depend on what the file was found by.
static __noinline void begin_end(struct ends_work *w, struct bpf_iter__task_file *ctx)
{
	struct task_struct *t = ctx->task;
	struct linux_end *e = &w->out.v;
	if (!t)
		return;
	__builtin_memset(&w->out, 0, sizeof(w->out));
	u32 mode = word_of(w->file, file___k, f_mode); // FMODE_READ, FMODE_WRITE
	e->flags = mode & (END_READS | END_WRITES);
	e->kind = w->s.kind, e->object = w->s.object, e->peer = w->s.peer;
	e->file = w->file, e->inode = w->s.inode, e->dev = w->s.dev;
	e->tgid = tgid_in(t, cfg_level);
	e->start = t->group_leader->start_boottime;
	e->fd = ctx->fd;
	e->refs = refs_of(w->file);
	w->files = word_of((u64)t, task_struct___e, files);
}

static __always_inline u32 *room_of(struct end_wanted *m, u32 flags)
{
	return (flags & (END_READS | END_WRITES)) == END_READS ? &m->readers : &m->others;
}

// put_end writes the end for what was wanted by m, if there is room for more of it.
static __noinline void put_end(struct ends_work *w, struct end_wanted *m, struct seq_file *seq, u32 flags)
{
	struct ends_ask *a = the_ask();
	if (!a || !m)
		return;
	if (*room_of(m, w->out.v.flags) >= ENDS_KEPT) {
		a->crowded++;
		return;
	}
	if (a->found >= a->most) {
		a->too_many = 1;
		return;
	}
	u32 was = w->out.v.flags;
	w->out.what = OUT_END;
	w->out.index = m->index;
	w->out.v.flags = was | flags;
	if (!bpf_seq_write(seq, &w->out, sizeof(w->out))) {
		a->found++;
		(*room_of(m, was))++;
	}
	w->out.v.flags = was;
}

// find looks for w->key.
static __always_inline struct end_wanted *find(struct ends_work *w) { return bpf_map_lookup_elem(&wanted, &w->key); }

static __always_inline void start_key(struct ends_work *w, u32 by)
{
	__builtin_memset(&w->key, 0, sizeof(w->key));
	w->key.by = by;
}

static __always_inline struct end_wanted *find_word(struct ends_work *w, u32 by, u64 word)
{
	start_key(w, by);
	w->key.local[0] = word;
	return word ? find(w) : 0;
}

// put_server writes an end of which nobody knows whether it is wanted: of each object up to
// ENDS_KEPT, too.
static __noinline void put_server(struct ends_work *w, struct seq_file *seq)
{
	struct end_wanted fresh = { .index = NO_INDEX }, *m = find_word(w, BY_OBJECT, w->s.object);
	if (!m) {
		start_key(w, BY_SERVER);
		w->key.local[0] = w->s.object ? w->s.object : w->s.private;
		bpf_map_update_elem(&wanted, &w->key, &fresh, NO_EXIST);
		m = find(w);
	}
	put_end(w, m, seq, END_SERVES);
}

#endif
