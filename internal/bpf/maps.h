// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The maps that the programs of both objects use. The loader gives the second
// object those of the first.
#ifndef STACKSHOT_MAPS_H
#define STACKSHOT_MAPS_H

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct control);
} controls SEC(".maps");

// One slot per possible CPU; the loader sets max_entries.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_slot);
} cpus SEC(".maps");

static __always_inline struct cpu_slot *slot_of(u32 cpu) { return bpf_map_lookup_elem(&cpus, &cpu); }

static __always_inline struct control *the_control(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&controls, &zero);
}

#endif
