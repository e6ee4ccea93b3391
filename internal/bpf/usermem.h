// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// User memory of any task, without a fault, a lock or a wait: its page tables are
// walked as the processor walks them, through the kernel's map of all memory.
// That works with interrupts off and in a panic. What is not present is said to be
// absent; nothing is brought in. Where that map is and how the tables are laid out
// the loader found out and verified on pages of its own (directmap.go).
//
// On a CPU that was not stopped a task may change its tables meanwhile. Then a
// stale entry may be read, and the bytes be of a page that has another owner by
// now; but never of anything that is not ordinary memory (ram.h): not the first
// table either, for the mm itself may be another's.
#ifndef STACKSHOT_USERMEM_H
#define STACKSHOT_USERMEM_H

// Set by the loader before the programs are loaded; constant after.
const volatile u32 cfg_top_shift;  // of the table that mm->pgd is
const volatile u32 cfg_va_bits;    // of a user address
const volatile u64 cfg_encryption; // bits of an entry that are no address
const volatile u64 cfg_prot_none;  // in an entry that is not present: a page, but PROT_NONE

#define TABLE_BITS (cfg_page_shift - 3) // entries are of 8 bytes, tables of a page

// Entries. amd64: arch/x86/include/asm/pgtable_types.h; every level has the user
// bit. arm64: arch/arm64/include/asm/pgtable-hwdef.h, pgtable-prot.h; a leaf has
// it (AP[1]), and its type says whether it is one.
#if defined(__TARGET_ARCH_x86)
#define ENTRY_PRESENT(e) ((e) & 1)
#define ENTRY_LEAF(e, shift) ((shift) == cfg_page_shift || ((e) & 0x80))
#define ENTRY_USER(e, leaf) ((e) & 4)
#define ENTRY_SPECIAL (1ull << 9)
#define ENTRY_ADDRESS(e) ((e) & 0x000ffffffffff000ull)
#else
// 64 KiB pages: bits 12-15 are address bits 48-51, or 0.
#define ENTRY_PRESENT(e) ((e) & 1)
#define ENTRY_LEAF(e, shift) ((shift) == cfg_page_shift || !((e) & 2))
#define ENTRY_USER(e, leaf) (!(leaf) || ((e) & 0x40))
#define ENTRY_SPECIAL (1ull << 56)
#define ENTRY_ADDRESS(e)                                                                                   \
	(cfg_page_shift == 16 ? ((e) & 0x0000ffffffff0000ull) | ((e) & 0xf000) << 36                           \
						  : (e) & 0x0003ffffffffffffull & ~0ull << cfg_page_shift)
#endif

// Not present: PAGE_ABSENT with something in the entry (swap, migration), PAGE_NONE
// without, which in memory of no file is what was never written to.
enum page_why { PAGE_THERE, PAGE_ABSENT, PAGE_REFUSED, PAGE_NONE };

// What the translation of one worker keeps. All of it is in map memory: in
// registers each value would be one more state for the verifier. Written by the
// worker's own programs alone.
struct user_memory {
	u64 pgd;
	u64 page, page_len, page_at; // the last translation: addresses, and where the kernel sees them
	u64 mid, mid_table;          // the last table but one: what it maps begins at mid, plus one; 0: none
	struct ram_found ram;
	u64 table;
	u32 shift, why;
	u32 walks, unused;
};

// user_of begins with a thread. Pages are forgotten from one to the next, so that
// what a thread costs does not depend on who came before; tables of the same task
// are not, until user_forget.
static __always_inline void user_of(struct user_memory *m, struct mm_struct *mm)
{
	u64 pgd = (u64)mm->pgd;
	if (m->pgd != pgd)
		m->mid = 0;
	m->pgd = pgd;
	m->page_len = m->walks = 0;
}

static __always_inline void user_forget(struct user_memory *m) { m->pgd = 0; }

static __noinline void find_ram(struct user_memory *m, u64 pa) { seek_ram(&m->ram, pa); }

static __always_inline bool in_ram(struct user_memory *m, u64 pa, u64 len)
{
	if (!holds(&m->ram, pa, len))
		find_ram(m, pa);
	return holds(&m->ram, pa, len);
}

static __always_inline u64 refuse(struct user_memory *m, u32 why)
{
	m->why = why;
	return 0;
}

// found keeps the translation that a leaf gives. The kernel may have taken a page
// out of its own map (memfd_secret): one word is tried.
static __always_inline u64 found(struct user_memory *m, u64 va, u64 entry)
{
	u64 len = 1ull << (m->shift & 63), word;
	u64 pa = ENTRY_ADDRESS(entry) & ~cfg_encryption & ~(len - 1);
	if ((entry & ENTRY_SPECIAL) || !in_ram(m, pa, len))
		return refuse(m, PAGE_REFUSED);
	u64 at = cfg_dm_base + pa;
	if (!kernel_word(at + (va & (len - 1) & ~7ull)) && bpf_probe_read_kernel(&word, sizeof(word), (void *)(at + (va & (len - 1) & ~7ull))))
		return refuse(m, PAGE_REFUSED);
	m->page = va & ~(len - 1);
	m->page_at = at;
	m->page_len = len;
	return at + (va & (len - 1));
}

// walk_level reads one entry. 1: it is a leaf, and *at where the byte is, or 0
// with m->why; 0: m->table is the next.
static __always_inline int walk_level(struct user_memory *m, u64 va, u64 *at)
{
	u64 shift = m->shift & 63, index = va >> shift;
	if (shift != cfg_top_shift)
		index &= (1ull << TABLE_BITS) - 1;
	u64 entry = kernel_word(m->table + index * 8);
	bool leaf = ENTRY_LEAF(entry, shift);
	*at = 0;
	if (!ENTRY_PRESENT(entry)) {
		m->why = entry & cfg_prot_none ? PAGE_REFUSED : entry ? PAGE_ABSENT : PAGE_NONE;
		return 1;
	}
	if (!ENTRY_USER(entry, leaf)) {
		m->why = PAGE_REFUSED;
		return 1;
	}
	if (leaf) {
		*at = found(m, va, entry);
		return 1;
	}
	u64 pa = ENTRY_ADDRESS(entry) & ~cfg_encryption;
	if (!in_ram(m, pa, 1ull << cfg_page_shift)) {
		m->why = PAGE_REFUSED;
		return 1;
	}
	m->table = cfg_dm_base + pa;
	m->shift = shift - TABLE_BITS;
	if (m->shift == cfg_page_shift + TABLE_BITS) {
		m->mid = (va >> shift << shift) + 1;
		m->mid_table = m->table;
	}
	return 0;
}

// first_table is where the task's first table may be read; 0: nowhere. Tables are
// aligned to their size.
static __always_inline u64 first_table(struct user_memory *m)
{
	u64 size = 8ull << ((cfg_va_bits - cfg_top_shift) & 63);
	u64 pa = UNTAGGED(m->pgd) - cfg_dm_base;
	return m->pgd & (size - 1) || !in_ram(m, pa, size) ? 0 : cfg_dm_base + pa;
}

// user_walk translates by the tables: five levels at most, and from the last but
// one where that is known.
static __noinline u64 user_walk(struct user_memory *m, u64 va)
{
	u64 at = 0, span = cfg_page_shift + 2 * TABLE_BITS;
	m->walks++;
	if (va >> (cfg_va_bits & 63))
		return refuse(m, PAGE_REFUSED);
	m->table = m->mid_table, m->shift = span - TABLE_BITS;
	if (!m->mid || m->mid - 1 != (va >> span << span)) {
		m->table = first_table(m), m->shift = cfg_top_shift;
		if (!m->table)
			return refuse(m, PAGE_REFUSED);
	}
	for (u32 i = 0; i < 5; i++)
		if (walk_level(m, va, &at))
			return at;
	return refuse(m, PAGE_REFUSED);
}

// user_at is where the kernel sees the byte at va, as far as the end of its page;
// 0: nowhere, and m->why says why.
static __always_inline u64 user_at(struct user_memory *m, u64 va)
{
	u64 off = va - m->page;
	return off < m->page_len ? m->page_at + off : user_walk(m, va);
}

#endif
