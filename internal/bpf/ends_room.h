// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Who sleeps until there is room in the queue of a unix socket: a listener whose queue of
// connections is full, a socket that has as many datagrams unread as it may. The socket that
// waits leads to none of the two, so they are found from the other side: by the tasks in the
// list of who waits for that room (unix_wait_for_peer). The list is walked without its lock,
// so with a bound, and only as long as each link agrees with the one before.
#ifndef STACKSHOT_ENDS_ROOM_H
#define STACKSHOT_ENDS_ROOM_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct wait_queue_head___e { struct list_head head; };
struct wait_queue_entry___e { void *private; struct list_head entry; };
struct socket_wq___e { struct wait_queue_head___e wait; };
struct unix_sock___e { struct socket_wq___e peer_wq; };
struct task_struct___start { u64 start_boottime; };
#pragma clang attribute pop

enum { ROOM_LONG = 256 };

// room_list: of a unix socket; 0: this kernel does not tell.
static __always_inline u64 room_list(u64 sk)
{
	if (!has_field(unix_sock___e, peer_wq.wait.head))
		return 0;
	return sk + place_of(unix_sock___e, peer_wq.wait.head);
}

// room_wanted says whether this is a unix socket with somebody in that list.
static __always_inline bool room_wanted(struct ends_work *w, struct ends_ask *a)
{
	u64 sk = w->s.object;
	if (!(a->flags & ASK_ROOM) || !sk || (u16)sock_word(sk, skc_family) != UNIX)
		return 0;
	u64 head = room_list(sk), next = head ? kernel_word(head) : 0;
	return next && next != head;
}

// waits_with: the socket with which a task waits; 0: it is not asked for. The address may be
// of no task: then no number and start agree with it. A socket that is connected has itself
// told when there is room, without a task: its entry names the socket of the list.
static __always_inline u64 waits_with(struct ends_work *w, u64 task)
{
	if (!task || task == w->s.object)
		return 0;
	struct thread_key key = { word_of(task, task_struct___start, start_boottime), nr_at(word_of(task, task_struct___e, thread_pid)) };
	struct thread_asked *a = bpf_map_lookup_elem(&threads, &key);
	return a ? a->sends : 0;
}

static long one_sleeper(u32 i, struct walk *walk)
{
	struct ends_work *w = walk->w;
	u64 node = node_here(w);
	if (!node)
		return 1;
	u64 task = word_of(node - place_of(wait_queue_entry___e, entry), wait_queue_entry___e, private);
	struct end_wanted *m = find_word(w, BY_ROOM, waits_with(w, task));
	if (m && !has_room(walk->seq, ROOM_MORE)) // else all that is written of this file would be lost
		return 1;
	if (m)
		put_end(w, m, walk->seq, END_ROOM | ((w->out.v.flags & END_LISTENS) ? END_ACCEPTS : END_PEER));
	go_on(w, node);
	return 0;
}

static __noinline void room_ends(struct ends_work *w, struct ends_ask *a, struct seq_file *seq)
{
	struct walk walk = { w, seq };
	if (!a || !room_wanted(w, a))
		return;
	start_list(w, room_list(w->s.object));
	bpf_loop(ROOM_LONG, one_sleeper, &walk, 0);
	if (w->at != w->head) // not to the end of it
		a->crowded++;
}

#endif
