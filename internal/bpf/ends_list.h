// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Lists of the kernel that are walked without their locks: list_head, and queues that begin like
// one, next and then prev. Each walk has a bound of its own, and ends where a link does not agree
// with the one before.
#ifndef STACKSHOT_ENDS_LIST_H
#define STACKSHOT_ENDS_LIST_H

static __always_inline void start_list(struct ends_work *w, u64 head)
{
	w->head = w->before = head;
	w->at = kernel_word(head);
}

// node_here is the node at hand; 0: the walk is at its end.
static __always_inline u64 node_here(struct ends_work *w)
{
	u64 node = w->at;
	return node && node != w->head && kernel_word(node + 8) == w->before ? node : 0;
}

static __always_inline void go_on(struct ends_work *w, u64 node)
{
	w->before = node;
	w->at = kernel_word(node);
}

#endif
