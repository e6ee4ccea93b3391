// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The command line of a process whose mappings are recorded in the window, from
// its own memory: /proc/PID/cmdline would wait for the same lock.
#ifndef STACKSHOT_RECORD_CMDLINE_H
#define STACKSHOT_RECORD_CMDLINE_H

// copy_args copies what is in one page. False: that was the end, or it is not there.
static __noinline bool copy_args(struct maple *m, struct user_work *u, struct cmdline_item *i)
{
	u64 off = m->copied, va = m->args + off, n = m->args_end - va, page = 1ull << cfg_page_shift;
	if (va >= m->args_end || off >= CMDLINE_MOST)
		return 0;
	if (n > page - (va & (page - 1)))
		n = page - (va & (page - 1));
	if (n > CMDLINE_MOST - off)
		n = CMDLINE_MOST - off;
	u64 at = user_at(&u->mem, va);
	asm volatile("" : "+r"(n));
	asm volatile("" : "+r"(off));
	if (!at || n > CMDLINE_MOST || off > CMDLINE_MOST || bpf_probe_read_kernel(i->v + off, n, (void *)at))
		return 0;
	m->copied = off + n;
	return 1;
}

// record_cmdline writes as much of it as is present, at most CMDLINE_MOST bytes:
// they lie in two pages.
static __noinline long record_cmdline(struct sink *s, struct maple *m)
{
	struct user_work *u = cfg_user_mode ? my_user_work() : 0;
	if (!u || m->args >= m->args_end)
		return 0;
	struct cmdline_item *i = sink_reserve(s, sizeof(*i)); // record_maps made sure of the room
	if (!i)
		return NO_ROOM;
	u->mem.pgd = m->pgd;
	u->mem.page_len = u->mem.mid = 0;
	m->copied = 0;
	if (copy_args(m, u, i))
		copy_args(m, u, i);
	u64 n = m->copied;
	if (!n)
		return 0;
	asm volatile("" : "+r"(n));
	if (n > CMDLINE_MOST)
		return NO_ROOM;
	bpf_probe_read_kernel(i->v + n, 16, m->path + MAPPED_PATH); // zeros
	kc_bytes(&i->h, KC_LX_CMDLINE_SEEN, n);
	return sink_commit(s, sizeof(i->h) + ((n + 15) & 0x1ff0));
}

#endif
