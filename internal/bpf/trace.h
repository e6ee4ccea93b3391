// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The snapshotter's own last events, a ring per CPU: for the file when a capture
// goes wrong, or when asked. Places and data: kcdata/linux.go, LinuxTrace.
#ifndef STACKSHOT_TRACE_H
#define STACKSHOT_TRACE_H

enum trace_place {
	TRACE_TAKEN = 1, TRACE_ARRIVED, TRACE_DECIDED, TRACE_HELD, TRACE_CENSUS, TRACE_ITEM, TRACE_ITEM_END,
	TRACE_CHUNK, TRACE_NO_SPACE, TRACE_DRAINED, TRACE_VERIFIED, TRACE_RELEASED, TRACE_LEFT,
};
enum { TRACE_EVENTS = 256 };

struct trace_event { u64 at, datum; u32 cpu, place; };

// Written by the worker of its CPU alone; next counts events, not places.
struct trace_ring {
	u32 next, pad[31];
	struct trace_event events[TRACE_EVENTS];
};

ONE_VALUE(traces, struct trace_ring); // one per possible CPU

const enum trace_place *unused_place __attribute__((unused));

static __noinline void trace_at(u64 at, u32 place, u64 datum)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct trace_ring *r = bpf_map_lookup_elem(&traces, &cpu);
	if (!r)
		return;
	u64 n = r->next++;
	hide(n);
	struct trace_event *e = &r->events[n & (TRACE_EVENTS - 1)];
	e->at = at, e->place = place, e->cpu = cpu, e->datum = datum;
}

static __always_inline u64 trace_now(u32 place, u64 datum)
{
	u64 at = bpf_ktime_get_ns();
	trace_at(at, place, datum);
	return at;
}

#endif
