// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The executable mappings of a process whose /proc/PID/maps would probably hang, because
// somebody holds its mmap_lock for writing, or waits for it. Of other processes the maps
// are read after the release. Each mapping is an array of one LINUX_MAPPING, followed by
// a LINUX_MAP_NAME if it has a path. LINUX_MAP_WALK comes last and says how far the walk
// came.
#ifndef STACKSHOT_RECORD_MAPS_H
#define STACKSHOT_RECORD_MAPS_H

// Bounds of one process's walk, whatever its tree looks like: the machine is stopped
// meanwhile, and a damaged tree may have circles.
enum { MAP_STEPS = 8192, MAP_LEAVES = 1024, MAPS_MOST = 512 };
// MAP_WALK_NS (ns) is the longest walk, by the sink.

// maps_blocked says why /proc/PID/maps would wait; 0: it would not. In the count of
// kernel/locking/rwsem.c bit 0 is the writer and bit 1 says that somebody waits. With
// PREEMPT_RT (kernel/locking/rwbase_rt.c) the readers' sign bit is clear while a writer
// has the lock or waits for readers to leave. The lock is only looked at, never taken.
static __always_inline u32 maps_blocked(struct mm_struct *mm)
{
	u32 why = all_maps_asked() ? MAP_WALK_ASKED : 0;
	if (bpf_core_field_exists(mm->mmap_lock.count)) {
		u64 count = mm->mmap_lock.count.counter;
		return why | (count & 1 ? MAP_WALK_WRITER : 0) | (count & 2 ? MAP_WALK_WAITERS : 0);
	}
	struct rw_semaphore___rt *rt = (void *)&mm->mmap_lock;
	s32 readers = -1;
	if (bpf_core_field_exists(rt->rwbase.readers))
		bpf_probe_read_kernel(&readers, sizeof(readers), &rt->rwbase.readers);
	return why | (readers >= 0 ? MAP_WALK_WRITER : 0);
}

// want_maps notes whether the open task's mappings are to be recorded (m->why), and what
// record_maps needs of the mm. The two are apart since record_maps has no task at hand:
// in engine pull it runs after the last thread. Without an mm, or redacted: not.
static __noinline void want_maps(struct mm_struct *mm)
{
	struct maple *m = the_maple();
	if (!m)
		return;
	m->why = m->tree = 0;
	if (!mm || cfg_redact)
		return;
	m->why = maps_blocked(mm);
	if (!m->why)
		return;
	maple_of(m, mm);
	m->vdso = (u64)mm->context.vdso;
	m->pgd = (u64)mm->pgd;
	m->args = mm->arg_start, m->args_end = mm->arg_end;
}

struct map_items {
	struct kc_header h;
	struct linux_mapping v;
	u64 pad;
	struct kc_header name_h;
	char name[MAPPED_PATH + 16];
};
// Room for the last piece wherever it begins: the verifier does not see that
// pieces end where the whole does.
enum { CMDLINE_MOST = 4096 };
struct cmdline_item { struct kc_header h; u8 v[2 * CMDLINE_MOST + 16]; };
struct map_walk_item { KC_ITEM(struct linux_map_walk, walk); };

static __always_inline void fill_mapping(struct linux_mapping *v, struct maple *m)
{
	__builtin_memset(v, 0, sizeof(*v));
	v->start = vma_word(m, vm_start);
	v->end = vma_word(m, vm_end);
	v->inode = m->inode;
	if (vma_word(m, vm_file))
		v->offset = vma_word(m, vm_pgoff) << cfg_page_shift;
	v->dev_major = m->device >> 20; // include/linux/kdev_t.h
	v->dev_minor = m->device & 0xfffff;
	v->flags = m->flags;
}

// record_map writes the mapping at hand. Without a path it is the array alone. Mappings
// beyond the bounds are found and not written; the walk's record has both numbers.
static __always_inline long record_map(struct sink *s, struct maple *m)
{
	if (m->written >= MAPS_MOST || m->bytes + sizeof(struct map_items) > MAP_BYTES)
		return 0;
	path_of(m);
	struct map_items *i = sink_reserve(s, sizeof(*i));
	if (!i)
		return NO_ROOM;
	i->h.type = KC_ARRAY_PAD0 | 8;
	i->h.size = sizeof(i->v) + 8;
	i->h.flags = ((u64)KC_LX_MAPPING << 32) | 1;
	fill_mapping(&i->v, m);
	i->pad = 0;
	m->written++;
	u64 pos = m->pos;
	asm volatile("" : "+r"(pos));
	if (pos >= MAPPED_PATH) {
		m->bytes += __builtin_offsetof(struct map_items, name_h);
		return sink_commit(s, __builtin_offsetof(struct map_items, name_h));
	}
	u32 text = MAPPED_PATH - pos + 1; // the NUL with it
	u64 n = (text + 15) & ~15u;
	kc_bytes(&i->name_h, KC_LX_MAP_NAME, text);
	asm volatile("" : "+r"(n));
	if (n > sizeof(i->name))
		return NO_ROOM;
	bpf_probe_read_kernel(i->name, n, m->path + pos);
	m->bytes += __builtin_offsetof(struct map_items, name) + n;
	return sink_commit(s, __builtin_offsetof(struct map_items, name) + (n & 0x1ff));
}

// next_leaf goes on with the leaf after the one at hand, from the root: nodes have no links
// to their neighbours. False: there is none (the walk is whole), or a bound was reached.
static __always_inline bool next_leaf(struct maple *m)
{
	if (m->leaves && m->last == ~0ull) {
		m->whole = 1;
		return 0;
	}
	if (m->leaves >= MAP_LEAVES || bpf_ktime_get_ns() - m->began > MAP_WALK_NS)
		return 0;
	u64 key = m->leaves ? m->last + 1 : 0;
	m->leaves++;
	return maple_find(m, key);
}

struct maps_to { struct sink *s; };

// maps_step looks at one slot, or goes to the next leaf. It counts a mapping that does not
// fit its slot as torn and goes on; if the slot itself does not fit, nothing behind it in
// this node can be trusted, and the walk ends.
static long maps_step(u32 i, struct maps_to *to)
{
	struct maple *m = the_maple();
	if (!m)
		return 1;
	if (m->offset > m->end)
		return !next_leaf(m);
	if (!take_slot(m, word_of(maple_range_64, slot))) {
		m->torn++;
		return 1;
	}
	if (m->link) {
		m->entries++;
		if (!load_vma(m))
			m->torn++;
		else if ((vma_word(m, vm_flags) & VM_EXEC_) && load_file(m)) {
			m->found++;
			if (record_map(to->s, m)) {
				m->full = 1;
				return 1;
			}
		}
	}
	m->min = m->max + 1;
	m->offset++;
	return 0;
}

static __always_inline void start_maps(struct maple *m)
{
	m->began = bpf_ktime_get_ns();
	m->tree = 0;
	m->offset = 1, m->end = 0; // beyond the end, so maps_step begins with next_leaf
	m->whole = !m->root;
	m->full = m->entries = m->leaves = m->torn = m->found = m->written = m->bytes = m->refused = 0;
}

static long record_cmdline(struct sink *s, struct maple *m);

// record_maps writes what want_maps asked for, and the command line after it.
static __noinline long record_maps(struct sink *s)
{
	struct maple *m = the_maple();
	struct maps_to to = { .s = s };
	if (!m || !m->why)
		return 0;
	start_maps(m);
	if (!sink_room(s, MAP_BYTES + sizeof(struct map_walk_item) + sizeof(struct cmdline_item)))
		return NO_ROOM;
	bpf_loop(MAP_STEPS, maps_step, &to, 0);
	if (m->full)
		return NO_ROOM;
	struct map_walk_item *i = sink_reserve(s, sizeof(*i));
	if (!i)
		return NO_ROOM;
	kc_item_full(&i->walk, KC_LX_MAP_WALK);
	struct linux_map_walk *v = &i->walk.v;
	v->flags = m->why | (m->whole ? MAP_WALK_WHOLE : 0);
	v->entries = m->entries, v->leaves = m->leaves, v->torn = m->torn;
	v->found = m->found, v->written = m->written;
	v->refused = m->refused, v->reserved = 0;
	v->walk_ns = bpf_ktime_get_ns() - m->began;
	return sink_commit(s, sizeof(*i)) ? NO_ROOM : record_cmdline(s, m);
}

#endif
