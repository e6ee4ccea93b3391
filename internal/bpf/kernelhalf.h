// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The half of all addresses that is the kernel's. arm64 knows it by bit 55: the byte
// above is no address. A plain load of a user's address is handled as any fault is,
// unless the kernel counts no preemption: then it may sleep. From 6.9 on the verifier
// puts a check of its own before such a load ("bpf: verifier: prevent userspace
// memory access", 66e13b615a0c), which an address with a tag passes.
#ifndef STACKSHOT_KERNELHALF_H
#define STACKSHOT_KERNELHALF_H

#if defined(__TARGET_ARCH_x86)
// The topmost bit: with five levels of tables the kernel's half begins at 0xff00 << 48.
static __always_inline bool kernel_half(u64 at) { return (s64)at < 0; }
#else
static __always_inline bool kernel_half(u64 at) { return (s64)(at << 8) < 0; }
#endif

// Where kernels turns a pointer into a number, on each CPU.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} pointer_bits SEC(".maps");

// kernels says the same of what the verifier knows as a pointer. The verifier allows
// no arithmetic with pointers, but takes what is read from a map for a number.
static __always_inline bool is_kernels(const void *p)
{
	u32 zero = 0;
	volatile u64 *bits = bpf_map_lookup_elem(&pointer_bits, &zero);
	if (!bits)
		return 0;
	*bits = (u64)p;
	return kernel_half(*bits);
}

#define kernels(p) is_kernels((const void *)(p))

#endif
