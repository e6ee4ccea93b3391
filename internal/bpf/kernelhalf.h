// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The half of all addresses that is the kernel's. arm64 knows it by bit 55: the byte
// above is no address. A plain load of a user's address is handled as any fault is,
// unless the kernel counts no preemption: then it may sleep. From 6.9 on the verifier
// puts a check of its own before such a load ("bpf: verifier: prevent userspace
// memory access", 66e13b615a0c), which an address with a tag passes.
#ifndef STACKSHOT_KERNELHALF_H
#define STACKSHOT_KERNELHALF_H

static __always_inline bool kernel_half(u64 at) { return (s64)(at << 8) < 0; }

// kernels says the same of what the verifier knows as a pointer: it lets nobody do
// sums with those.
#define kernels(p)                                                                             \
	({                                                                                         \
		__label__ is_, known_;                                                                 \
		bool yes_ = 0;                                                                         \
		asm volatile goto("if %[p_] & %[bit_] goto %l[is_]"                                    \
						  : : [p_] "r"(p), [bit_] "r"(1ull << 55) : : is_);                    \
		goto known_;                                                                           \
	is_:                                                                                       \
		yes_ = 1;                                                                              \
	known_:                                                                                    \
		yes_;                                                                                  \
	})

#endif
