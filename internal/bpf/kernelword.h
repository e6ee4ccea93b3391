// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Reading the kernel's memory wherever it is, by helper: for programs that must
// load where a cast is not to be had (sink_region.h has the other form).
#ifndef STACKSHOT_KERNELWORD_H
#define STACKSHOT_KERNELWORD_H

// What cannot be read is 0.
static __always_inline u64 kernel_word(u64 at)
{
	u64 v = 0;
	bpf_probe_read_kernel(&v, sizeof(v), (void *)at);
	return v;
}

static __always_inline void kernel_pair(u64 at, u64 *pair) { bpf_probe_read_kernel(pair, 16, (void *)at); }

#endif
