// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Which pointers may be followed. A task on a CPU that was not stopped may exit, or
// change its memory, while a program looks at it. Its page tables and nodes may be
// freed, and other bytes may stand where their pointers were. So every such pointer
// must lie in the kernel's map of all memory, and there in System RAM, before anything
// is loaded by it. So no load touches a device, or a user's address, where it would
// fault and might sleep (arm64 without CONFIG_PREEMPT_COUNT). The file says how many
// were refused. Ordinary memory that has another owner by now is recognised by its
// content (maple.h).
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

// seek_ram looks for the range that begins last at or below pa. It does not branch:
// each would be two states more for the verifier. Of a pa that is none it finds any.
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

// holds says that first and last of len bytes at pa lie in it: in one question, by
// signs, since all of that stands in many places.
static __always_inline bool holds(struct ram_found *r, u64 pa, u64 len)
{
	u64 first = pa - r->start, last = first + len - 1;
	return (s64)((first - r->len) & (last - r->len) & ~(first | last)) < 0;
}

// A kernel that tags its pointers (CONFIG_KASAN_HW_TAGS) has the tag in the top byte.
#if defined(__TARGET_ARCH_arm64)
#define UNTAGGED(at) ((at) | 0xffull << 56)
#else
#define UNTAGGED(at) (at)
#endif

// ordinary is where len bytes that a pointer leads to may be read; 0: nowhere.
static __always_inline u64 ordinary(struct ram_found *r, u64 at, u64 len)
{
	u64 pa = UNTAGGED(at) - cfg_dm_base;
	if (!holds(r, pa, len))
		seek_ram(r, pa);
	return holds(r, pa, len) ? cfg_dm_base + pa : 0;
}

#endif
