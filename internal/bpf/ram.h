// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Which pointers may be followed. A task on a CPU that was not stopped may exit, or
// change its memory, while a program looks at it. Its page tables and nodes may be
// freed, and other bytes may stand where their pointers were. So every such pointer
// must lie in the kernel's map of all memory, and there in System RAM, before anything
// is loaded by it. Then no load touches a device, whose reads have effects, or a user
// address, where it would fault and might sleep (arm64 without CONFIG_PREEMPT_COUNT).
// The file says how many pointers were refused. Memory that is ordinary but has another
// owner by now is recognised by its content (maple.h).
#ifndef STACKSHOT_RAM_H
#define STACKSHOT_RAM_H

// Set by the loader before the programs are loaded; constant after. Where it found
// no such map both are 0, and nothing is ordinary.
const volatile u64 cfg_dm_base; // where physical address 0 would be mapped

// System RAM by /proc/iomem, ascending; unused ones begin beyond every address.
enum { RAM_BITS = 7, RAM_RANGES = 1 << RAM_BITS };
struct ram_range { u64 start, end; };
const volatile struct ram_range cfg_ram[RAM_RANGES];

// The range that was found last, in map memory of the program that asks.
struct ram_found { u64 start, len; };

// seek_ram finds the last range that begins at or below pa, by binary search. It does not
// branch: the verifier would follow both ways of each branch. The sign bit of
// start - 1 - pa is set exactly if start <= pa. For a pa that is no physical address it
// finds any range, and holds refuses it. hide keeps clang from making branches of it.
static __always_inline void seek_ram(struct ram_found *r, u64 pa)
{
	u64 i = 0;
#pragma unroll
	for (int bit = RAM_BITS - 1; bit >= 0; bit--) {
		u64 begun = (cfg_ram[(i + (1 << bit)) & (RAM_RANGES - 1)].start - 1 - pa) >> 63;
		hide(begun);
		i += begun << bit;
		hide(i);
	}
	i &= RAM_RANGES - 1;
	r->start = cfg_ram[i].start;
	r->len = cfg_ram[i].end - r->start;
}

// holds says that the first and the last of len bytes at pa lie in the range. x - len is
// negative if x is below the range's end; first | last is not if neither is below its
// start. All signs are combined into one, so this is one branch for the verifier, where
// it stands in many places. With r->len 0 (nothing found yet) it is false.
static __always_inline bool holds(struct ram_found *r, u64 pa, u64 len)
{
	u64 first = pa - r->start, last = first + len - 1;
	return (s64)((first - r->len) & (last - r->len) & ~(first | last)) < 0;
}

// A kernel that tags its pointers (CONFIG_KASAN_HW_TAGS) has the tag in the top byte. The
// address itself has all ones there: it is in the kernel's half.
#if defined(__TARGET_ARCH_arm64)
#define UNTAGGED(at) ((at) | 0xffull << 56)
#else
#define UNTAGGED(at) (at)
#endif

// ordinary returns where len bytes that a pointer leads to may be read, 0 if nowhere. A
// pointer below cfg_dm_base gives a huge pa, which no range holds.
static __always_inline u64 ordinary(struct ram_found *r, u64 at, u64 len)
{
	u64 pa = UNTAGGED(at) - cfg_dm_base;
	if (!holds(r, pa, len))
		seek_ram(r, pa);
	return holds(r, pa, len) ? cfg_dm_base + pa : 0;
}

#endif
