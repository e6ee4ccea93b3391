package snapshot

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
)

// A machineTrace is a witness beside the engine: small BPF programs of the
// test's own note, by CPU and with the time, each interrupt and each switch to
// or from one of the two threads that are watched there.
type machineTrace struct {
	events *ebpf.Map
	pidOff int16 // of task_struct.pid
}

// A traced is one line of a CPU's ring. Its time is CLOCK_MONOTONIC, ns.
type traced struct {
	at         int64
	kind       uint64 // tracedSwitch, or the number of an interrupt's tracepoint plus one
	prev, next int    // of a switch: thread ids, 0 for idle
}

func (e traced) isSwitch() bool { return e.kind == tracedSwitch }

const (
	tracedSwitch = 0
	tracedEvents = 1 << 13 // of one CPU's ring
	tracedSize   = 32
	tracedHead   = 32 // u64: events written so far; two u32: threads watched; u64: until when; nothing
)

// interrupts are the tracepoints of everything that "interrupts off" keeps
// away. amd64 has its own vectors beside those of devices; elsewhere timer and
// IPIs are ordinary interrupts.
var interrupts = []string{
	"irq_handler_entry", "local_timer_entry", "reschedule_entry",
	"call_function_entry", "call_function_single_entry", "irq_work_entry",
}

// traceMachine traces until the test ends.
func traceMachine(tb testing.TB, cpus int) *machineTrace {
	tb.Helper()
	m := &machineTrace{pidOff: int16(offsetOf(tb, "task_struct", "pid"))}
	var err error
	m.events, err = ebpf.NewMap(&ebpf.MapSpec{Name: "traced", Type: ebpf.Array, KeySize: 4,
		ValueSize: tracedHead + tracedEvents*tracedSize, MaxEntries: uint32(cpus)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { m.events.Close() })
	m.attach(tb, "sched_switch", m.switchEvent())
	found := 0
	for i, name := range interrupts {
		if m.attach(tb, name, m.interruptEvent(i)) {
			found++
		}
	}
	if found == 0 {
		tb.Fatalf("this kernel has none of the tracepoints %v", interrupts)
	}
	return m
}

// watch begins anew on a CPU: until then, note interrupts and the switches of
// two threads.
func (m *machineTrace) watch(tb testing.TB, cpu, a, b int, until int64) {
	tb.Helper()
	value := make([]byte, tracedHead+tracedEvents*tracedSize)
	binary.NativeEndian.PutUint32(value[8:], uint32(a))
	binary.NativeEndian.PutUint32(value[12:], uint32(b))
	binary.NativeEndian.PutUint64(value[16:], uint64(until))
	if err := m.events.Put(uint32(cpu), value); err != nil {
		tb.Fatal(err)
	}
}

// attach reports false where the kernel has no such tracepoint.
func (m *machineTrace) attach(tb testing.TB, name string, body asm.Instructions) bool {
	tb.Helper()
	prog, err := ebpf.NewProgramWithOptions(&ebpf.ProgramSpec{
		Name: name, Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: name,
		License: "Dual BSD/GPL", Instructions: m.program(body),
	}, ebpf.ProgramOptions{LogDisabled: true})
	if errors.Is(err, btf.ErrNotFound) || errors.Is(err, ebpf.ErrNotSupported) {
		return false
	}
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	tb.Cleanup(func() { prog.Close() })
	l, err := link.AttachTracing(link.TracingOptions{Program: prog})
	if err != nil {
		tb.Fatalf("attach to %s: %v", name, err)
	}
	tb.Cleanup(func() { l.Close() })
	return true
}

// program notes what notes says, which has the context in R6 and the CPU's
// ring in R7, leaves kind, prev and next in R1 to R3, and may go to "out".
// Tracepoints of both sorts run with interrupts off, so a CPU's ring has one
// writer at a time.
func (m *machineTrace) program(notes asm.Instructions) asm.Instructions {
	before := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.FnGetSmpProcessorId.Call(),
		asm.StoreMem(asm.RFP, -4, asm.R0, asm.Word),
		asm.LoadMapPtr(asm.R1, m.events.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.FnKtimeGetNs.Call(),
		asm.LoadMem(asm.R1, asm.R7, 16, asm.DWord),
		asm.JGE.Reg(asm.R0, asm.R1, "out"),
		asm.LoadMem(asm.R8, asm.R7, 0, asm.DWord),
		asm.Mov.Reg(asm.R9, asm.R8),
		asm.And.Imm(asm.R9, tracedEvents-1),
		asm.LSh.Imm(asm.R9, 5), // tracedSize
		asm.Add.Reg(asm.R9, asm.R7),
	}
	after := asm.Instructions{
		asm.StoreMem(asm.R9, tracedHead, asm.R0, asm.DWord).WithSymbol("write"),
		asm.StoreMem(asm.R9, tracedHead+8, asm.R1, asm.DWord),
		asm.StoreMem(asm.R9, tracedHead+16, asm.R2, asm.Word),
		asm.StoreMem(asm.R9, tracedHead+20, asm.R3, asm.Word),
		asm.Add.Imm(asm.R8, 1),
		asm.StoreMem(asm.R7, 0, asm.R8, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
		asm.Return(),
	}
	return append(append(before, notes...), after...)
}

func (m *machineTrace) switchEvent() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R2, asm.R6, 8, asm.DWord), // prev
		asm.LoadMem(asm.R2, asm.R2, m.pidOff, asm.Word),
		asm.LoadMem(asm.R3, asm.R6, 16, asm.DWord), // next
		asm.LoadMem(asm.R3, asm.R3, m.pidOff, asm.Word),
		asm.Mov.Imm(asm.R1, tracedSwitch),
		asm.LoadMem(asm.R4, asm.R7, 8, asm.Word),
		asm.JEq.Reg(asm.R2, asm.R4, "write"),
		asm.JEq.Reg(asm.R3, asm.R4, "write"),
		asm.LoadMem(asm.R4, asm.R7, 12, asm.Word),
		asm.JEq.Reg(asm.R2, asm.R4, "write"),
		asm.JNE.Reg(asm.R3, asm.R4, "out"),
	}
}

func (m *machineTrace) interruptEvent(i int) asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R1, int32(i+1)), asm.Mov.Imm(asm.R2, 0), asm.Mov.Imm(asm.R3, 0)}
}

// on gives the events of a CPU in [from, to], oldest first. False: not all
// that happened is there, since the ring came round or the time was over.
func (m *machineTrace) on(tb testing.TB, cpu int, from, to int64) (out []traced, whole bool) {
	tb.Helper()
	b, err := m.events.LookupBytes(uint32(cpu))
	if err != nil || b == nil {
		tb.Fatalf("events of CPU %d: %v", cpu, err)
	}
	n, until := binary.NativeEndian.Uint64(b), int64(binary.NativeEndian.Uint64(b[16:]))
	for i := range min(n, tracedEvents) {
		e := b[tracedHead+i*tracedSize:]
		ev := traced{at: int64(binary.NativeEndian.Uint64(e)), kind: binary.NativeEndian.Uint64(e[8:]),
			prev: int(binary.NativeEndian.Uint32(e[16:])), next: int(binary.NativeEndian.Uint32(e[20:]))}
		if ev.at >= from && ev.at <= to {
			out = append(out, ev)
		}
	}
	return out, n <= tracedEvents && to < until
}

// offsetOf is where the running kernel has a member of a struct, in bytes.
func offsetOf(tb testing.TB, name, member string) uint32 {
	tb.Helper()
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		tb.Fatal(err)
	}
	var s *btf.Struct
	if err := spec.TypeByName(name, &s); err != nil {
		tb.Fatal(err)
	}
	for _, f := range s.Members {
		if f.Name == member {
			return f.Offset.Bytes()
		}
	}
	tb.Fatalf("struct %s has no %s", name, member)
	return 0
}
