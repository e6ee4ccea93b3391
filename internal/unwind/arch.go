package unwind

import "math/bits"

// maxRegs is room for the DWARF registers of either machine that can matter:
// amd64 0-16, arm64 0-32.
const maxRegs = 33

// registers are the values of one frame, by DWARF number.
type registers struct {
	value [maxRegs]uint64
	known uint64 // bit per register: its value is known
}

func (r *registers) set(reg int, v uint64) {
	r.value[reg] = v
	r.known |= 1 << reg
}

func (r *registers) forget(reg int) { r.known &^= 1 << reg }

func (r *registers) get(reg int) (uint64, bool) {
	if reg < 0 || reg >= maxRegs || r.known>>reg&1 == 0 {
		return 0, false
	}
	return r.value[reg], true
}

// arch says where a machine keeps what unwinding needs.
type arch struct {
	name       string
	order      []int8 // DWARF number of each value of kcdata.LinuxRegister; -1: not needed
	sp, fp, pc int
	lr         int // -1: return addresses are pushed by the call
	argument   int // the first one of a function
	restorer   [][]byte
	// Where the kernel puts the interrupted registers, as seen with the stack pointer
	// that a signal handler returns with: the offset of the first one, and the DWARF
	// numbers of all.
	contextAt    uint64
	contextOrder []int8
}

// The names of both machines as Go and as uname say them.
func archOf(name string) *arch {
	switch name {
	case "amd64", "x86_64":
		return &amd64
	case "arm64", "aarch64":
		return &arm64
	}
	return nil
}

// DWARF numbers from the System V ABI's amd64 supplement: rax 0, rdx 1, rcx 2,
// rbx 3, rsi 4, rdi 5, rbp 6, rsp 7, r8 to r15, return address 16. The signal
// frame is struct rt_sigframe of arch/x86: pretcode has been popped, then struct
// ucontext (uc_flags, uc_link, uc_stack: 40 bytes), then struct sigcontext.
var amd64 = arch{
	name:  "amd64",
	order: []int8{15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, -1, 16, -1, -1, 7, -1},
	sp:    7, fp: 6, pc: 16, lr: -1, argument: 5,
	restorer: [][]byte{
		{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}, // mov $15, %rax; syscall
		{0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05},             // mov $15, %eax; syscall
	},
	contextAt: 40, contextOrder: []int8{8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16},
}

// DWARF numbers from the AArch64 DWARF ABI: x0 to x30, sp 31; the pc has 32. The
// signal frame is struct rt_sigframe of arch/arm64: siginfo (128 bytes), struct
// ucontext with uc_mcontext at 176, in it fault_address and then the registers.
var arm64 = arch{
	name:  "arm64",
	order: append(ascending(33), -1),
	sp:    31, fp: 29, pc: 32, lr: 30, argument: 0,
	restorer: [][]byte{
		{0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}, // mov x8, #139; svc #0
	},
	contextAt: 128 + 176 + 8, contextOrder: ascending(33),
}

func ascending(n int8) []int8 {
	out := make([]int8, n)
	for i := range out {
		out[i] = int8(i)
	}
	return out
}

// load fills registers from the values of a thread; false: there are too few.
func (a *arch) load(values []uint64) (registers, bool) {
	var r registers
	if len(values) < len(a.order) {
		return r, false
	}
	for i, reg := range a.order {
		if reg >= 0 {
			r.set(int(reg), values[i])
		}
	}
	return r, true
}

// The widths of user addresses that arm64 kernels are built with.
var addressBits = [...]int{52, 48, 47, 42, 39}

// stripped returns addr without the pointer authentication code that arm64
// compilers put into the unused upper bits of return addresses. How wide
// addresses are depends on the kernel, so it is the mapping that decides.
func (a *arch) stripped(addr uint64, mapped func(uint64) bool) uint64 {
	if a.lr < 0 || bits.Len64(addr) <= addressBits[len(addressBits)-1] || mapped(addr) {
		return addr
	}
	for _, n := range addressBits {
		if plain := addr & (1<<n - 1); mapped(plain) {
			return plain
		}
	}
	return addr
}
