// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Package workqueue in BPF: the layout and the order of accesses are those of its doc.go,
// which also says why each access is plain or atomic. The producer is the main worker's
// census, the consumers are all workers.
#ifndef STACKSHOT_QUEUE_H
#define STACKSHOT_QUEUE_H

enum { LINE_WORDS = 32, QUEUE_SLOTS = 1024, KIND_E = 1 };

// Head, tail and populated each have 128 bytes to themselves (LINE_WORDS): a consumer that
// polls or swaps one does not take the line of another from the producer.
struct queue_item { u32 index; s32 tgid, first_tid; u32 count; };
struct queue_slot { u64 waited_ns, waits, taken, pad[5]; };
struct queue_lane { u32 tail, pad0[LINE_WORDS - 1], head, pad1[LINE_WORDS - 1]; };
struct queue_fixed {
	u32 magic, version, capacity, queues, pad0[LINE_WORDS - 4];
	u32 pushed, refused, pad1[LINE_WORDS - 2];
	u32 populated, pad2[LINE_WORDS - 1];
	struct queue_lane lanes[2];
	struct queue_slot slots[QUEUE_SLOTS];
};

const struct queue_fixed *unused_queue __attribute__((unused));
const struct queue_item *unused_item __attribute__((unused));

// The size is the loader's, for cfg_queue_items.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct queue_fixed) + 24);
} queue SEC(".maps");

static __always_inline struct queue_fixed *the_queue(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&queue, &zero);
}

// item_at returns item n, 0 if there is no such place. The size of the map is set at load
// time; hide keeps the bound on the very register that the verifier sees added.
static __always_inline struct queue_item *item_at(struct queue_fixed *q, u64 n)
{
	hide(n);
	if (n >= cfg_queue_items)
		return 0;
	hide(n);
	return (void *)((char *)q + sizeof(*q) + n * sizeof(struct queue_item));
}

// number_at is the place in a lane's array of item numbers.
static __always_inline u32 *number_at(struct queue_fixed *q, u32 lane, u64 at)
{
	hide(at);
	if (at >= cfg_queue_items)
		return 0;
	hide(at);
	char *base = (char *)q + sizeof(*q) + (u64)cfg_queue_items * sizeof(struct queue_item);
	if (lane)
		base += (u64)cfg_queue_items * 4;
	return (void *)(base + at * 4);
}

// queue_push adds one item; 0: it did not fit. Only the producer calls it, so its own words
// are plain. The item and its number are written first, then tail is exchanged: whoever
// sees the new tail sees the item. Ten threads or more go to the second (hard) lane.
static __noinline int queue_push(struct queue_fixed *q, u32 index, s32 tgid, s32 first_tid, u32 count)
{
	u32 n = q->pushed;
	u32 lane = q->queues == 2 && count >= 10;
	struct queue_lane *l = lane ? &q->lanes[1] : &q->lanes[0];
	u32 at = l->tail;
	struct queue_item *it = item_at(q, n);
	u32 *number = number_at(q, lane, at);
	if (!it || !number) {
		q->refused++;
		return 0;
	}
	it->index = index, it->tgid = tgid, it->first_tid = first_tid, it->count = count;
	q->pushed = n + 1;
	*number = n;
	u32 was = __sync_lock_test_and_set(&l->tail, at + 1);
	hide(was);
	return 1;
}

// Results of a claim that are no item number. NOTHING: not yet; DRAINED: nothing more comes;
// BROKEN: the words contradict each other, or the swap did not succeed in time.
enum { CLAIM_DRAINED = -1, CLAIM_NOTHING = -2, CLAIM_BROKEN = -3 };

// claim_from takes one number off a lane. The loads are plain: a worker that finds nothing
// does not take the lines from those who write them. The swap of head is a full barrier,
// so number and item are read after the tail that covers them.
static __noinline s64 claim_from(struct queue_fixed *q, u32 lane)
{
	struct queue_lane *l = lane ? &q->lanes[1] : &q->lanes[0];
	turns_unless(TURNS_MOST, pause_over()) {
		u32 head = peek(l->head), tail = peek(l->tail);
		if (head > tail) // is it so, or was tail read first?
			head = observe(&l->head), tail = observe(&l->tail);
		if (tail > cfg_queue_items || head > tail)
			return CLAIM_BROKEN;
		if (head == tail)
			return CLAIM_NOTHING;
		if (__sync_val_compare_and_swap(&l->head, head, head + 1) != head)
			continue;
		u32 *number = number_at(q, lane, head);
		return number ? *number : CLAIM_BROKEN;
	}
	return CLAIM_BROKEN;
}

// claim_any tries the lane for this kind of core first: P cores take the large items, E cores
// the small ones, so that the longest task is not started last on the slowest core.
static __noinline s64 claim_any(struct queue_fixed *q, u32 kind)
{
	u32 hard = q->queues == 2;
	s64 n = claim_from(q, hard && kind != KIND_E);
	return n == CLAIM_NOTHING && hard ? claim_from(q, kind == KIND_E) : n;
}

// queue_claim is one turn of workqueue's Next. It says DRAINED only if the lanes were found
// empty after populated was observed. In the other order an item that was pushed between
// the two reads would be left behind.
static __noinline s64 queue_claim(struct queue_fixed *q, u32 kind)
{
	s64 n = claim_any(q, kind);
	if (n != CLAIM_NOTHING || !peek(q->populated))
		return n;
	u32 populated = observe(&q->populated);
	hide(populated);
	n = claim_any(q, kind);
	return n == CLAIM_NOTHING ? CLAIM_DRAINED : n;
}

#endif
