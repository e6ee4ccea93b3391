// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The memory that records go to, mapped by the loader too: one map with one value, whose
// size the loader sets (cfg_region_bytes).
#ifndef STACKSHOT_REGION_H
#define STACKSHOT_REGION_H

const volatile u32 cfg_region_bytes;

#define ONE_VALUE(name, type_)               \
	struct {                                 \
		__uint(type, BPF_MAP_TYPE_ARRAY);    \
		__uint(map_flags, BPF_F_MMAPABLE);   \
		__uint(max_entries, 1);              \
		__type(key, u32);                    \
		__type(value, type_);                \
	} name SEC(".maps")

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__uint(value_size, 4096);
} region SEC(".maps");

// region_at is n bytes of it at off; 0: not inside.
static __always_inline void *region_at(u64 off, const u32 n)
{
	u32 zero = 0;
	char *b = bpf_map_lookup_elem(&region, &zero);
	if (!b)
		return 0;
	hide(off);
	if (off > cfg_region_bytes - n)
		return 0;
	hide(off);
	return b + off;
}

// Behind the region lies room that no record has. The verifier knows only the largest length
// of a write, and wants that much room wherever the write may begin, even at the very
// end of the region (regionSlack in trap.go).
#define REGION_SLACK (20 << 10)

static __always_inline void *region_loose(u64 off, const u32 n)
{
	u32 zero = 0;
	char *b = bpf_map_lookup_elem(&region, &zero);
	hide(off);
	return !b || off > cfg_region_bytes + REGION_SLACK - n ? 0 : b + off;
}

#endif
