// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// User memory of any task, without a fault, a lock or a wait: its page tables are
// walked as the processor walks them, through the kernel's map of all memory.
// That works with interrupts off and in a panic. A page that is not present is reported as
// absent; nothing is brought in. The loader has found out where that map is and how the
// tables are laid out, and has verified both on pages of its own (directmap.go).
//
// A task on a CPU that was not stopped may change its tables meanwhile. Then a stale
// entry may be read, and the bytes may be from a page that has another owner by now.
// They are never from anything but ordinary memory (ram.h). The first table is checked
// too, since the mm itself may belong to somebody else by now.
#ifndef STACKSHOT_USERMEM_H
#define STACKSHOT_USERMEM_H

// Set by the loader before the programs are loaded; constant after.
const volatile u32 cfg_top_shift;  // of the table that mm->pgd is
const volatile u32 cfg_va_bits;    // of a user address
const volatile u64 cfg_encryption; // bits of an entry that are no address
const volatile u64 cfg_prot_none;  // in an entry that is not present: a page, but PROT_NONE

#define TABLE_BITS (cfg_page_shift - 3) // entries are of 8 bytes, tables of a page

// Bits of an entry. amd64: arch/x86/include/asm/pgtable_types.h; every level has the user
// bit; bit 7 (PSE) marks a large page. arm64: arch/arm64/include/asm/pgtable-hwdef.h,
// pgtable-prot.h; only a leaf has the user bit (AP[1]); bit 1 clear marks a block, which
// is a leaf above the last level. SPECIAL is the software bit PTE_SPECIAL: the
// kernel does not count the page as the process's own (vm_normal_page); it may be a device.
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

// Why a page could not be read. PAGE_ABSENT: it is not present, and the entry holds
// something (swap, migration). PAGE_NONE: the entry is empty; in memory without a file
// the page was never written to. PAGE_REFUSED: it is not the process's ordinary memory.
enum page_why { PAGE_THERE, PAGE_ABSENT, PAGE_REFUSED, PAGE_NONE };

// What the translation of one worker keeps. All of it is in map memory: in
// registers each value would be one more state for the verifier. Written by the
// worker's own programs alone.
struct user_memory {
	u64 pgd;
	u64 page, page_len, page_at; // the last translation: addresses, and where the kernel sees them
	u64 mid, mid_table;          // the last table but one; mid: where what it maps begins, plus one; 0: none
	struct ram_found ram;
	u64 table;                   // of the walk under way, as the kernel sees it
	u32 shift, why;              // address bits below this table's index; enum page_why
	u32 walks, unused;           // translations for this thread, for its record
};

// user_of begins a thread's walk. It forgets the page of the thread before, so that a
// thread's cost does not depend on who came before it. It keeps a table of the same
// process (same pgd) until user_forget: its threads' stacks often share that table.
static __always_inline void user_of(struct user_memory *m, struct mm_struct *mm)
{
	u64 pgd = (u64)mm->pgd;
	if (m->pgd != pgd)
		m->mid = 0;
	m->pgd = pgd;
	m->page_len = m->walks = 0;
}

static __always_inline void user_forget(struct user_memory *m) { m->pgd = 0; }

// find_ram is not inline: the search is long, and in_ram stands in many places.
static __noinline void find_ram(struct user_memory *m, u64 pa) { seek_ram(&m->ram, pa); }

// in_ram says whether len bytes at physical address pa are System RAM. Most are in the range
// that was found last.
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

// found keeps the translation that a leaf gives, and returns where the kernel sees va. The
// kernel may have taken the page out of its own map (memfd_secret), so one word is tried.
// kernel_word gives 0 both for a word that is 0 and for one that cannot be read; the
// helper's result tells these apart.
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

// walk_level reads one entry of m->table. 1: the walk is over; *at is where the kernel
// sees the byte, or 0 and m->why says why. 0: m->table is the next table. The first
// table's index is not masked: it may have more or fewer entries than the others, and
// user_walk has checked va against cfg_va_bits.
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
	// Nothing is loaded from the next table before it is known to be ordinary memory.
	if (!in_ram(m, pa, 1ull << cfg_page_shift)) {
		m->why = PAGE_REFUSED;
		return 1;
	}
	m->table = cfg_dm_base + pa;
	m->shift = shift - TABLE_BITS;
	// The next page of a stack is most likely below the same table: start there then.
	if (m->shift == cfg_page_shift + TABLE_BITS) {
		m->mid = (va >> shift << shift) + 1;
		m->mid_table = m->table;
	}
	return 0;
}

// first_table returns where the task's first table may be read, 0 if nowhere. A table is
// aligned to its size (on arm64 the first may be smaller than a page), so a pointer that
// is not aligned is none.
static __always_inline u64 first_table(struct user_memory *m)
{
	u64 size = 8ull << ((cfg_va_bits - cfg_top_shift) & 63);
	u64 pa = UNTAGGED(m->pgd) - cfg_dm_base;
	return m->pgd & (size - 1) || !in_ram(m, pa, size) ? 0 : cfg_dm_base + pa;
}

// user_walk translates va by the tables. There are five levels at most. If the last table
// but one for va is known, the walk starts there.
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

// user_at returns where the kernel sees the byte at va. The address is good up to the end
// of va's page. 0: it cannot be read, and m->why says why.
static __always_inline u64 user_at(struct user_memory *m, u64 va)
{
	u64 off = va - m->page;
	return off < m->page_len ? m->page_at + off : user_walk(m, va);
}

#endif
