// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What panic() was called with: its format and its first arguments, as words, and as texts
// where they point to any. Go makes the message of them (package panicregion).
#ifndef STACKSHOT_PANIC_MESSAGE_H
#define STACKSHOT_PANIC_MESSAGE_H

#if defined(__TARGET_ARCH_x86)
// register_args takes what stands behind the format in registers; the sixth is on the stack
// and is left at 0 (System V ABI).
enum { PARM1 = REG_DI, PARM2 = REG_SI };
static __always_inline void register_args(u64 *v, u64 *regs)
{
	v[0] = regs[REG_SI], v[1] = regs[REG_DX], v[2] = regs[REG_CX], v[3] = regs[REG_R8], v[4] = regs[REG_R9];
	v[5] = 0;
}

// caller_of: x86 pushes the return address, so the stack has the caller.
static __always_inline u64 caller_of(u64 *regs) { return 0; }

// struct __va_list_tag of the System V ABI.
struct va_words { u32 gp_offset, fp_offset; u64 overflow, saved; };

static __noinline void listed_args(struct panic_run *r, u64 list)
{
	struct va_words va = {};
	if (bpf_probe_read_kernel(&va, sizeof(va), (void *)list))
		return;
	for (u32 i = 0; i < PANIC_ARGS; i++) {
		u64 at = va.saved + va.gp_offset;
		if (va.gp_offset >= 48) {
			at = va.overflow;
			va.overflow += 8;
		} else {
			va.gp_offset += 8;
		}
		bpf_probe_read_kernel(&r->args[i], 8, (void *)at);
	}
}
#else
enum { PARM1 = 0, PARM2 = 1 };
static __always_inline void register_args(u64 *v, u64 *regs)
{
	v[0] = regs[1], v[1] = regs[2], v[2] = regs[3], v[3] = regs[4], v[4] = regs[5], v[5] = regs[6];
}

// caller_of: at the first instruction of a function its caller is in the link register alone.
static __always_inline u64 caller_of(u64 *regs) { return regs[30]; }

// va_list of the AAPCS64.
struct va_words { u64 stack, gr_top, vr_top; s32 gr_offs, vr_offs; };

static __noinline void listed_args(struct panic_run *r, u64 list)
{
	struct va_words va = {};
	if (bpf_probe_read_kernel(&va, sizeof(va), (void *)list))
		return;
	for (u32 i = 0; i < PANIC_ARGS; i++) {
		u64 at = va.gr_top + (s64)va.gr_offs;
		if (va.gr_offs >= 0) {
			at = va.stack;
			va.stack += 8;
		} else {
			va.gr_offs += 8;
		}
		bpf_probe_read_kernel(&r->args[i], 8, (void *)at);
	}
}
#endif

// note_message: the arguments come from registers or from a list.
static __always_inline void note_message(struct panic_run *r, u64 format, u64 *regs, u64 list)
{
	if (!format)
		return;
	bpf_probe_read_kernel_str(r->format, sizeof(r->format), (void *)format);
	if (regs)
		__builtin_memcpy(r->args, regs, sizeof(r->args));
	else if (list)
		listed_args(r, list);
	for (u32 i = 0; i < PANIC_TEXTS; i++)
		if (kernel_half(r->args[i]) && bpf_probe_read_kernel_str(r->text[i], PANIC_TEXT, (void *)r->args[i]) >= 0)
			r->texts |= 1u << i;
}

#endif
