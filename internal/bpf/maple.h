// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// A process's mappings, from the maple tree of its mm, without a lock. The tree is as it
// was when the machine stopped, perhaps in the middle of a change. So what does not fit
// together counts as not known: a node that was taken out of the tree, a mapping that is
// not this mm's or does not lie where the tree says, a pointer to memory that is not
// ordinary. Every walk has a bound of its own, for a damaged tree may have circles.
//
// The encoding is lib/maple_tree.c's, the same from 6.1 to 7.3: a pointer to a
// node has the node's type in bits 3-6, and nodes are aligned to their size; the
// root has bit 1 set, else it is no node. Pivots are the inclusive ends of the
// slots; a leaf's slots are the entries. Where the parts of a node are is BTF's.
#ifndef STACKSHOT_MAPLE_H
#define STACKSHOT_MAPLE_H

enum { MAPLE_LEAF_64 = 1, MAPLE_RANGE_64, MAPLE_ARANGE_64 }; // enum maple_type
enum { MAPLE_LOST, MAPLE_AT_LEAF, MAPLE_BELOW };

// MAPLE_DEPTH: a node has five entries at least, so this is a million mappings.
enum { MAPLE_WORDS = 32, MAPLE_PIVOTS = 15, MAPLE_DEPTH = 10, MAPPED_PATH = 256 };

// What a walk keeps, one for each CPU. Only the programs of that CPU's worker write it. It
// lives on from one item to the next, so whoever begins sets what it needs (maple_of,
// start_maps, forget_leaf).
struct maple {
	u64 node[MAPLE_WORDS]; // the node reached, copied at once
	u64 vma[MAPLE_WORDS];  // the mapping found, as far as it is of interest
	u64 mm, root, vdso, pgd, args, args_end;
	u64 key, link; // looked for; the encoded pointer in the slot reached
	u64 min, max;  // of that slot, inclusive
	u64 low, last; // of its node
	u64 tree;      // the root from which node is a leaf; 0: it is none
	u64 began, stack_end;
	u32 offset, end; // the slot reached, the last one in use
	u32 slots, state; // word at which slots begin; what became of the last step
	u32 why, whole, full;
	u32 entries, leaves, torn, found, written, bytes;
	u32 refused; // pointers to what is not ordinary memory, since maple_of or start_maps
	u32 lost, cut; // of the path at hand: one of them; it begins with an ellipsis
	u64 word;
	struct ram_found ram;
	u64 dentry, mount, inode; // of the mapping's file
	u32 device, flags;
	u32 copied;
	u32 pos, parts;                  // of its path, written from the end
	char path[2 * MAPPED_PATH + 32]; // zero from MAPPED_PATH on
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct maple);
} maple SEC(".maps");

static __always_inline struct maple *the_maple(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&maple, &zero);
}

// refused counts a pointer that must not be followed, and marks the path at hand as lost.
static __always_inline u64 refused(struct maple *m)
{
	m->refused++;
	m->lost = 1;
	return 0;
}

// follow copies the n bytes that a pointer leads to. False: they could not be read. The
// result comes back through memory: the verifier would otherwise walk everything that
// follows once for each outcome. Many functions here do the same.
static __noinline bool follow(struct maple *m, void *to, u32 n, u64 at)
{
	u64 from = ordinary(&m->ram, at, n);
	volatile u64 *word = &m->word; // where the verifier forgets which
	*word = 0;
	if (from)
		*word = !bpf_probe_read_kernel(to, n, (void *)from);
	else
		refused(m);
	return *word;
}

// follow_word returns the word there, 0 if it could not be read. If the kernel's map of all
// memory is not known, no node is followed and there are no user stacks. The pointers
// that lead to a process's executable are then followed if they are kernel addresses.
static __noinline u64 follow_word(struct maple *m, u64 at)
{
	u64 from = ordinary(&m->ram, at, sizeof(u64));
	volatile u64 *word = &m->word; // where the verifier forgets which
	if (!cfg_dm_base && kernel_half(at))
		from = at;
	if (from)
		*word = kernel_word(from);
	else
		*word = refused(m);
	return *word;
}

#define follow_field(m, type, at, field) \
	follow_word(m, (at) + bpf_core_field_offset(((struct type *)0)->field))

#define word_of(type, field) (bpf_core_field_offset(((struct type *)0)->field) / 8)
#define words_of(type, field) (bpf_core_field_size(((struct type *)0)->field) / 8)
#define vma_word(m, field) ((m)->vma[word_of(vm_area_struct, field) & (MAPLE_WORDS - 1)])
#define vma_upto(field) (bpf_core_field_offset(((struct vm_area_struct *)0)->field) + 8)

// node_word reads a variable place in a node. The mask bounds it for the verifier; the asm
// keeps the compiler from dropping the mask.
static __always_inline u64 node_word(struct maple *m, u64 at)
{
	asm volatile("" : "+r"(at));
	return m->node[at & (MAPLE_WORDS - 1)];
}

static __always_inline u32 node_byte(struct maple *m, u32 at)
{
	return ((u8 *)m->node)[at & (sizeof(m->node) - 1)];
}

// node_end returns the last slot in use, as the kernel's ma_data_end does. Allocation nodes
// (alloc) always have it in their metadata. In the others the metadata shares its place
// with the last slot: it is valid only if the last pivot is 0, so that this slot is free.
static __always_inline u32 node_end(struct maple *m, bool alloc)
{
	const u32 pivots = words_of(maple_range_64, pivot);
	if (alloc)
		return node_byte(m, bpf_core_field_offset(((struct maple_arange_64 *)0)->meta.end));
	u64 pivot = node_word(m, word_of(maple_range_64, pivot) + pivots - 1);
	if (!pivot)
		return node_byte(m, bpf_core_field_offset(((struct maple_range_64 *)0)->meta.end));
	return pivot == m->last ? pivots - 1 : pivots;
}

// take_slot reads slot m->offset, of which m->min is known: its end (max) and its entry
// (link). Pivots only ascend and stay within the node; if not, the node is torn: False.
static __always_inline bool take_slot(struct maple *m, u32 slots)
{
	u64 pivot = node_word(m, word_of(maple_range_64, pivot) + m->offset);
	m->max = m->last;
	if (m->offset < m->end && pivot)
		m->max = pivot;
	m->link = node_word(m, slots + m->offset);
	return m->min <= m->max && m->max <= m->last;
}

// find_slot finds m->key's slot in the node at hand: it counts the pivots in use below the
// key. Mappings are made of pages, so keys and pivots are compared in units of 4 KiB. The
// differences then have room for a sign, and the loop needs no branch, of which the
// verifier would follow both ways 15 times over.
static __always_inline bool find_slot(struct maple *m, u32 slots)
{
	const u64 *pivot = m->node + word_of(maple_range_64, pivot);
	u64 end = m->end, key = m->key >> 12, below = 0;
#pragma unroll
	for (u64 i = 0; i < MAPLE_PIVOTS; i++)
		below += (((pivot[i] >> 12) - key) & (i - end)) >> 63;
	m->offset = below;
	m->min = m->low;
	if (below)
		m->min = node_word(m, word_of(maple_range_64, pivot) + below - 1) + 1;
	return take_slot(m, slots) && m->key >= m->min && m->key <= m->max;
}

// maple_known says that nodes are as this code knows them: they fit, have no more pivots
// than it compares, and both types have their pivots at the same place. CO-RE fills in
// the numbers, so on another kernel the loaded program simply finds nothing.
#define maple_known()                                                                          \
	(bpf_core_type_size(struct maple_node) == sizeof(((struct maple *)0)->node) &&             \
		words_of(maple_range_64, pivot) == MAPLE_PIVOTS && word_of(maple_range_64, pivot) == 1 && \
		word_of(maple_arange_64, pivot) == 1 && words_of(maple_arange_64, pivot) <= MAPLE_PIVOTS)

// maple_down reads the node that m->link points to and finds m->key's slot in it. The node
// is copied at once, so that all checks see the same bytes. Results of a branch go
// through memory: the verifier then walks the rest once. A leaf's range is known from its
// parent's slot (min, max), and becomes the node's bounds (low, last).
static __always_inline u32 maple_down(struct maple *m)
{
	const u64 mask = sizeof(m->node) - 1;
	u64 at = m->link & ~mask;
	volatile u32 *end = &m->end, *slots = &m->slots;
	u32 type = m->link >> 3 & 15;
	if (type < MAPLE_LEAF_64 || type > MAPLE_ARANGE_64 || !follow(m, m->node, sizeof(m->node), at))
		return MAPLE_LOST;
	if ((m->node[0] & ~mask) == at) // its own parent: taken out of the tree
		return MAPLE_LOST;
	m->low = m->min;
	m->last = m->max;
	*slots = word_of(maple_range_64, slot);
	if (type == MAPLE_ARANGE_64)
		*slots = word_of(maple_arange_64, slot);
	*end = node_end(m, type == MAPLE_ARANGE_64);
	if (*end > (type == MAPLE_ARANGE_64 ? words_of(maple_arange_64, pivot) : words_of(maple_range_64, pivot)))
		return MAPLE_LOST;
	if (!find_slot(m, *slots))
		return MAPLE_LOST;
	return type == MAPLE_LEAF_64 ? MAPLE_AT_LEAF : MAPLE_BELOW;
}

// maple_step is one turn of bpf_loop: pull's kernels have no open-coded iterators.
static long maple_step(u32 i, void *unused)
{
	struct maple *m = the_maple();
	if (!m)
		return 1;
	m->state = maple_down(m);
	return m->state != MAPLE_BELOW;
}

// maple_find goes from the root to the leaf that has key, and to key's slot. If the leaf
// that was reached last has it, the walk starts there: the threads of a process often
// have their stacks side by side. False: not known.
static __always_inline bool maple_find(struct maple *m, u64 key)
{
	m->key = key;
	if (m->tree && m->tree == m->root && key >= m->low && key <= m->last)
		return find_slot(m, word_of(maple_range_64, slot));
	m->tree = 0;
	m->link = m->root;
	m->min = 0;
	m->max = ~0ull;
	m->state = MAPLE_LOST;
	if (maple_known() && (m->root & 3) == 2) // else it is no node: there is no mapping
		bpf_loop(MAPLE_DEPTH, maple_step, 0, 0);
	if (m->state != MAPLE_AT_LEAF)
		return 0;
	m->tree = m->root;
	return 1;
}

// forget_leaf drops the leaf that was reached last: a task on a CPU that was not stopped may
// have changed its tree since.
static __always_inline void forget_leaf(void)
{
	struct maple *m = the_maple();
	if (m)
		m->tree = 0;
}

// maple_of begins with another process's tree.
static __always_inline void maple_of(struct maple *m, struct mm_struct *mm)
{
	m->mm = (u64)mm;
	m->root = (u64)mm->mm_mt.ma_root;
	m->refused = 0;
}

// load_vma reads the mapping in the slot reached, as far as its flags. The mapping must be
// this mm's and lie where the tree says. A mapping that is being changed does not lie
// there, and memory that was freed and belongs to another mapping by now has another mm.
// The field order differs between kernels, so n covers whichever field comes last.
static __always_inline bool load_vma(struct maple *m)
{
	u32 n = vma_upto(vm_flags), need = vma_upto(vm_mm) > vma_upto(vm_end) ? vma_upto(vm_mm) : vma_upto(vm_end);
	if (n < need)
		n = need;
	if (!m->link || m->link & 7 || n > sizeof(m->vma) || !follow(m, m->vma, n, m->link))
		return 0;
	return vma_word(m, vm_mm) == m->mm && vma_word(m, vm_start) == m->min && vma_word(m, vm_end) == m->max + 1;
}

// load_file reads the rest of it, as far as its file.
static __always_inline bool load_file(struct maple *m)
{
	u32 n = vma_upto(vm_file) > vma_upto(vm_pgoff) ? vma_upto(vm_file) : vma_upto(vm_pgoff);
	return n <= sizeof(m->vma) && follow(m, m->vma, n, m->link);
}

// vma_at finds the mapping that holds addr: then vma_word(m, ...) are its fields.
// False: there is none, or it is not known.
static __always_inline bool vma_at(struct maple *m, struct mm_struct *mm, u64 addr)
{
	maple_of(m, mm);
	return maple_find(m, addr) && load_vma(m);
}

enum { VM_READ_ = 1, VM_WRITE_ = 2, VM_EXEC_ = 4 };

// stack_end returns the end of the mapping that holds sp, if that can be read and written
// as a stack can; 0 if not known. This is the only place that decides how far a stack
// may be read. The result comes back through memory (follow).
static __noinline u64 stack_end(struct mm_struct *mm, u64 sp)
{
	struct maple *m = the_maple();
	u64 both = VM_READ_ | VM_WRITE_;
	if (!m)
		return 0;
	volatile u64 *end = &m->stack_end;
	*end = 0;
	if (vma_at(m, mm, sp) && (vma_word(m, vm_flags) & both) == both)
		*end = vma_word(m, vm_end);
	return *end;
}

#endif
