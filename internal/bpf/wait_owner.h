// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The owner of a kernel lock, by the lock's owner word.
#ifndef STACKSHOT_WAIT_OWNER_H
#define STACKSHOT_WAIT_OWNER_H

// owner_place says where a lock of this kind has its owner word; ~0: nowhere, or not known.
static __always_inline u64 owner_place(u32 kind)
{
	if (kind == LOCK_MUTEX && bpf_core_field_exists(((struct mutex *)0)->owner))
		return bpf_core_field_offset(((struct mutex *)0)->owner);
	if (kind == LOCK_SEMAPHORE && bpf_core_field_exists(((struct semaphore *)0)->last_holder))
		return bpf_core_field_offset(((struct semaphore *)0)->last_holder);
	if ((kind == LOCK_RWSEM_READ || kind == LOCK_RWSEM_WRITE) && bpf_core_field_exists(((struct rw_semaphore *)0)->owner))
		return bpf_core_field_offset(((struct rw_semaphore *)0)->owner);
	if (kind == LOCK_RT_MUTEX && bpf_core_field_exists(((struct rt_mutex_base *)0)->owner))
		return bpf_core_field_offset(((struct rt_mutex_base *)0)->owner);
	return ~0ull;
}

// wait_owner reads the owner word of the lock that was found. The low bits of the word are
// flags: of a mutex three, of the others two or one (kernel/locking). Bit 0 of a
// rw_semaphore's says that readers own it; the task in the word is then one that read. A
// mutex that was handed over names its new owner, who may sleep yet: until 6.13 whoever
// hands it over may lose its CPU before it wakes the other. That one waits for nobody.
enum { MUTEX_PICKUP = 4 };

static __noinline void wait_owner(struct wait_work *w, u32 level)
{
	u32 kind = w->v.kind;
	volatile u64 *at = &w->at;
	*at = owner_place(kind);
	if (!kind || *at == ~0ull)
		return;
	u64 word = 1;
	if (bpf_probe_read_kernel(&word, sizeof(word), (void *)(w->v.lock + *at))) {
		mark(w->v.flags, WAIT_BAD_OWNER);
		return;
	}
	if (kind == LOCK_SEMAPHORE)
		mark(w->v.flags, WAIT_LAST_HOLDER);
	if ((kind == LOCK_RWSEM_READ || kind == LOCK_RWSEM_WRITE) && (word & 1)) {
		mark(w->v.flags, WAIT_READERS);
		return;
	}
	if (kind == LOCK_MUTEX && word - w->task - MUTEX_PICKUP <= 3)
		word = 0;
	word &= ~7ull;
	if (!word) {
		mark(w->v.flags, WAIT_FREE);
	} else if (who_is(w, word, level)) {
		mark(w->v.flags, WAIT_OWNED);
		w->v.owner_tid = w->who.tid, w->v.owner_tgid = w->who.tgid;
		w->v.owner_start = w->who.start;
	} else {
		mark(w->v.flags, WAIT_BAD_OWNER);
	}
}

#endif
