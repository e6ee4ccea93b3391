package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"stackshot/kcdata"
)

// forger writes a plain buffer by hand: no writer would make such files.
type forger struct {
	w    io.Writer
	size int // bytes so far
	most int // bytes that it may have
}

func (f *forger) put(b []byte) {
	n, _ := f.w.Write(b) // the compressor's error comes with its Close
	f.size += n
}

// again writes b as often as there is room.
func (f *forger) again(b []byte) {
	for f.size+len(b) < f.most {
		f.put(b)
	}
}

// rest is how many bytes an item's payload may have.
func (f *forger) rest() int { return (f.most-f.size)&^0xfff - 4<<10 }

// payload is an item of n bytes that are b again and again.
func (f *forger) payload(t kcdata.Type, flags uint64, n int, b []byte) {
	n = n / 16 * 16
	f.put(item(t, flags, n))
	block := []byte(strings.Repeat(string(b), max(1, 64<<10/len(b))))
	for ; n > 0; n -= min(n, len(block)) {
		f.put(block[:min(n, len(block))])
	}
}

// array is one of n elements of the given bytes; they are a multiple of 16 together.
func (f *forger) array(elem kcdata.Type, n int, b []byte) {
	n &^= 15
	f.payload(kcdata.TypeArrayPad0, uint64(elem)<<32|uint64(n), n*len(b), b)
}

// full is an array of as many records as there is room for.
func (f *forger) full(elem kcdata.Type, record any) {
	b := packed(record)
	f.array(elem, f.rest()/len(b), b)
}

// item is a header, with the payload if it is given.
func item(t kcdata.Type, flags uint64, size int, payload ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(t))
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	b = binary.LittleEndian.AppendUint64(b, flags)
	return append(b, payload...)
}

// text is an item of a string, padded.
func text(t kcdata.Type, s string) []byte {
	b := append([]byte(s), make([]byte, 16-len(s)%16)...)
	return item(t, 0, len(b), b...)
}

// packed is the packed form of a record.
func packed(v any) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(err)
	}
	return b
}

func record(t kcdata.Type, v any) []byte {
	b := packed(v)
	pad := -len(b) & 15
	return item(t, uint64(0x80|pad), len(b)+pad, append(b, make([]byte, pad)...)...)
}

func opens(t kcdata.Type, id uint64) []byte {
	return item(kcdata.TypeContainerBegin, id, 16, append(binary.LittleEndian.AppendUint32(nil, uint32(t)), make([]byte, 12)...)...)
}

func closes(id uint64) []byte { return item(kcdata.TypeContainerEnd, id, 0) }

func join(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// addresses is an array of n of them that differ.
func addresses(t kcdata.Type, n int, from uint64) []byte {
	n &^= 1
	out := item(kcdata.TypeArrayPad0, uint64(t)<<32|uint64(n), 8*n)
	for i := range n {
		out = binary.LittleEndian.AppendUint64(out, from+16*uint64(i))
	}
	return out
}

// names is a string table of strings of n bytes that lie within each other.
func nested(n int, letter string) []byte {
	return append([]byte{0}, strings.Repeat(letter, n)...)
}

func bytesItem(t kcdata.Type, b []byte) []byte {
	pad := -len(b) & 15
	return item(t, uint64(0x80|pad), len(b)+pad, append(b, make([]byte, pad)...)...)
}

// definition of a type with n fields.
func definition(t kcdata.Type, n int, f func(i int) (elem kcdata.ElemType, offset, size, flags int)) []byte {
	b := make([]byte, 40+40*n)
	binary.LittleEndian.PutUint32(b, uint32(t))
	binary.LittleEndian.PutUint32(b[4:], uint32(n))
	copy(b[8:], "a_type_with_a_name_of_31_bytes.")
	for i := range n {
		e, off, size, flags := f(i)
		at := b[40+40*i:]
		at[0], at[1] = byte(flags), byte(e)
		binary.LittleEndian.PutUint16(at[2:], uint16(off))
		binary.LittleEndian.PutUint32(at[4:], uint32(size))
		copy(at[8:], "a_field_with_a_name_of_31_bytes")
	}
	return bytesItem(kcdata.TypeDefinition, b)
}

const (
	inTask   = kcdata.TypeTask
	inThread = kcdata.TypeThread
	blocks   = 2 // TASK_UNINTERRUPTIBLE
)

func aThread(id uint64, more ...[]byte) []byte {
	return join(opens(inThread, id), record(kcdata.TypeLinuxThread, kcdata.LinuxThread{State: blocks, Present: ^uint64(0) &^ (1<<14 | 1<<15 | 1<<12 | 1<<13)}), join(more...), closes(id))
}

// waiting is a task of threads that have all waited for an hour for a mutex that another one
// holds: of thread i of n the thread owner.
func waiting(f *forger, owner func(i, n uint32) uint32) {
	const n, hour = 6_000, 3600 * 1000_000_000
	f.put(text(kcdata.TypeLinuxIsolation, "irqoff"))
	f.put(record(kcdata.TypeLinuxWaitTaken, kcdata.LinuxWaitTaken{Sources: kcdata.WaitHasBlockedOn}))
	cpu := packed(kcdata.LinuxCPU{Flags: kcdata.CPUStopped, RqClock: 2 * hour, RqClockAt: 2 * hour})
	f.array(kcdata.TypeLinuxCPU, 16, cpu)
	f.put(opens(inTask, 1))
	for i := uint32(1); i <= n; i++ {
		f.put(join(opens(inThread, uint64(i)), record(kcdata.TypeLinuxThread, kcdata.LinuxThread{
			Present: kcdata.ThreadHasStart | kcdata.ThreadHasSchedInfo, Tid: i, Tgid: 1, State: blocks, LastArrival: hour, StartBoottime: 1,
		}), record(kcdata.TypeLinuxWait, kcdata.LinuxWait{
			Flags: kcdata.WaitField | kcdata.WaitOwned, Kind: kcdata.LockMutex, Lock: uint64(owner(i, n)) << 8, OwnerTid: owner(i, n), OwnerTgid: 1, OwnerStart: 1,
		}), closes(uint64(i))))
	}
	f.put(closes(1))
}

// shape is a way in which a small file makes much of itself.
type shape struct {
	name  string
	write func(f *forger)
}

// tables are records of which a file may have as many as it likes, by where they stand.
var tables = []struct {
	name   string
	in     []byte
	elem   kcdata.Type
	record any
}{
	{"cpus", nil, kcdata.TypeLinuxCPU, kcdata.LinuxCPU{CPU: 1, Flags: kcdata.CPUStopped | kcdata.CPUMissed, ArriveNs: 1}},
	{"phases", captured, kcdata.TypeLinuxPhases, kcdata.LinuxPhases{TotalNs: 1 << 40, RecordNs: 1 << 40, Present: 3}},
	{"arenas", captured, kcdata.TypeLinuxArena, kcdata.LinuxArena{Size: 1 << 40}},
	{"tries", captured, kcdata.TypeLinuxTry, kcdata.LinuxTry{StoppedNs: 1}},
	{"who ran", join(captured, record(kcdata.TypeLinuxAtomicity, kcdata.LinuxAtomicity{Compared: 1})), kcdata.TypeLinuxRan, kcdata.LinuxRan{Tid: 1 << 30}},
	{"left out", nil, kcdata.TypeLinuxLeftOut, kcdata.LinuxLeftOut{Tgid: 1 << 30}},
	{"trace", nil, kcdata.TypeLinuxTrace, kcdata.LinuxTrace{AtNs: 1 << 60}},
	{"control groups", nil, kcdata.TypeLinuxCgroup, kcdata.LinuxCgroup{}},
	{"symbols", nil, kcdata.TypeLinuxSymbol, kcdata.LinuxSymbol{}},
	{"mappings", opens(inTask, 1), kcdata.TypeLinuxMapping, kcdata.LinuxMapping{}},
	{"user symbols", opens(inTask, 1), kcdata.TypeLinuxUserSymbol, kcdata.LinuxUserSymbol{}},
	{"chains", join(opens(inTask, 1), opens(inThread, 1)), kcdata.TypeLinuxUserChain, kcdata.LinuxUserLink{}},
	{"namespaces of a thread", join(opens(inTask, 1), opens(inThread, 1)), kcdata.TypeLinuxThreadNS, kcdata.LinuxThreadNS{}},
}

var captured = record(kcdata.TypeLinuxCapture, kcdata.LinuxCapture{StoppedNs: 1})

// hostileShapes are all of them: each table, with elements of 4 bytes too, and more.
func hostileShapes() (all []shape) {
	for _, x := range tables {
		all = append(all, shape{x.name + " of 4 bytes", func(f *forger) { f.put(x.in); f.array(x.elem, f.rest()/4, []byte{1, 0, 0, 0}) }},
			shape{x.name, func(f *forger) { f.put(x.in); b := packed(x.record); f.array(x.elem, f.rest()/len(b), b) }})
	}
	return append(all, otherShapes...)
}

var otherShapes = []shape{
	{"a million control groups with one path, in the first", func(f *forger) {
		f.put(bytesItem(kcdata.TypeLinuxStrings, nested(4<<10, "\x01")))
		f.put(join(opens(inTask, 1), text(kcdata.TypeLinuxCgroupPath, strings.Repeat("\x01", 4000)), aThread(1), closes(1)))
		f.full(kcdata.TypeLinuxCgroup, kcdata.LinuxCgroup{Version: 2, Path: 1, Present: ^uint32(0), FullAvg10: 10_000, MaxEvents: 1 << 63})
	}},
	{"symbols with names within each other", func(f *forger) {
		f.put(bytesItem(kcdata.TypeLinuxStrings, nested(4<<10, "\x01")))
		f.full(kcdata.TypeLinuxSymbol, kcdata.LinuxSymbol{Addr: 1, Name: 1, Module: 2})
	}},
	{"modules with one name", func(f *forger) {
		f.put(bytesItem(kcdata.TypeLinuxStrings, nested(4<<10, "\x01")))
		f.full(kcdata.TypeLinuxModule, kcdata.LinuxModule{Name: 1, BuildIDLen: 20})
	}},
	{"a million mappings with one path", func(f *forger) {
		f.put(opens(inTask, 1))
		f.put(bytesItem(kcdata.TypeLinuxMapStrings, nested(8<<10, "\x01")))
		f.full(kcdata.TypeLinuxMapping, kcdata.LinuxMapping{Path: 1, Inode: 1, Flags: ^uint32(0) &^ kcdata.MappingInWindow, BuildIDLen: 20})
		f.put(closes(1))
	}},
	{"mappings with names from the window", func(f *forger) {
		f.put(opens(inTask, 1))
		m := packed(kcdata.LinuxMapping{Flags: kcdata.MappingInWindow})
		one := item(kcdata.TypeArrayPad0|kcdata.Type(-len(m)&15), uint64(kcdata.TypeLinuxMapping)<<32|1, (len(m)+15)&^15, append(m, make([]byte, -len(m)&15)...)...)
		f.again(join(one, text(kcdata.TypeLinuxMapName, strings.Repeat("\x01", 4000))))
	}},
	{"a million functions inlined into each other", func(f *forger) {
		f.put(opens(inTask, 1))
		f.put(bytesItem(kcdata.TypeLinuxMapStrings, nested(16<<10, "\x01")))
		f.put(aThread(1, addresses(kcdata.TypeUserStackLR64, 4096, 16), addresses(kcdata.TypeUserStackLR64, 2, 0)))
		f.full(kcdata.TypeLinuxUserSymbol, kcdata.LinuxUserSymbol{Addr: 16, Name: 1, Module: 2, File: 3})
		f.put(closes(1))
	}},
	{"stacks of 4096 long names", func(f *forger) {
		unit := join(opens(inTask, 1), bytesItem(kcdata.TypeLinuxMapStrings, nested(8<<10, "\x01")))
		sym := packed(kcdata.LinuxUserSymbol{Addr: 16, Name: 1, Module: 2, File: 3})
		head := item(kcdata.TypeArrayPad0, uint64(kcdata.TypeLinuxUserSymbol)<<32|64, 64*len(sym))
		f.put(join(unit, head, []byte(strings.Repeat(string(sym), 64))))
		stack := item(kcdata.TypeArrayPad0, uint64(kcdata.TypeUserStackLR64)<<32|4096, 8*4096)
		one := binary.LittleEndian.AppendUint64(nil, 16)
		f.again(aThread(1, stack, []byte(strings.Repeat(string(one), 4096))))
	}},
	{"stacks of one name each", func(f *forger) {
		f.put(join(opens(inTask, 1), bytesItem(kcdata.TypeLinuxMapStrings, nested(8<<10, "n"))))
		sym := packed(kcdata.LinuxUserSymbol{Addr: 16, Name: 1, Module: 2, File: 3})
		head := item(kcdata.TypeArrayPad0, uint64(kcdata.TypeLinuxUserSymbol)<<32|2, 2*len(sym))
		f.put(join(head, sym, sym))
		stack := item(kcdata.TypeArrayPad0, uint64(kcdata.TypeUserStackLR64)<<32|2, 16)
		one := binary.LittleEndian.AppendUint64(nil, 16)
		f.again(aThread(1, stack, one, one))
	}},
	{"kernel stacks with long names", func(f *forger) {
		f.put(bytesItem(kcdata.TypeLinuxStrings, nested(4<<10, "\x01")))
		sym := packed(kcdata.LinuxSymbol{Addr: 16, Name: 1, Module: 2})
		f.put(join(item(kcdata.TypeArrayPad0, uint64(kcdata.TypeLinuxSymbol)<<32|2, 2*len(sym)), sym, sym))
		f.put(opens(inTask, 1))
		stack := item(kcdata.TypeArrayPad0, uint64(kcdata.TypeKernStackLR64)<<32|4096, 8*4096)
		one := binary.LittleEndian.AppendUint64(nil, 16)
		f.again(aThread(1, stack, []byte(strings.Repeat(string(one), 4096))))
	}},
	{"stacks of many places in many tasks", func(f *forger) {
		f.again(join(opens(inTask, 1), aThread(1, addresses(kcdata.TypeUserStackLR64, 2000, 16), addresses(kcdata.TypeKernStackLR64, 2000, 16)), closes(1)))
	}},
	{"20 names repeated by every task", func(f *forger) {
		unit := opens(inTask, 1)
		for i := range 20 {
			unit = join(unit, text(kcdata.TypeLinuxEnrichFailed, strings.Repeat("\x01", 2000+i)))
		}
		f.again(join(unit, text(kcdata.TypeLinuxCgroupPath, strings.Repeat("\x01", 4000)), text(kcdata.TypeLinuxExePath, strings.Repeat("\x01", 4000)), aThread(1), closes(1)))
	}},
	{"programs that are not there", func(f *forger) {
		const n = 2000
		var maps, stack, strs []byte
		for i := range uint64(n) {
			maps = append(maps, packed(kcdata.LinuxMapping{Start: 16 + i<<20, End: 32 + i<<20, Path: uint32(8*i + 1), Inode: i + 1})...)
			stack = binary.LittleEndian.AppendUint64(stack, 20+i<<20)
			strs = fmt.Appendf(strs, "\x00/x/%04d", i)
		}
		f.put(join(opens(inTask, 1), bytesItem(kcdata.TypeLinuxMapStrings, append(strs, 0)),
			item(kcdata.TypeArrayPad0, uint64(kcdata.TypeLinuxMapping)<<32|n, len(maps), maps...),
			aThread(1, item(kcdata.TypeArrayPad0, uint64(kcdata.TypeUserStackLR64)<<32|n, len(stack), stack...)), closes(1)))
	}},
	{"a million tasks without threads", func(f *forger) { f.again(join(opens(inTask, 1), closes(1))) }},
	{"a million threads in a task", func(f *forger) { f.put(opens(inTask, 1)); f.again(join(opens(inThread, 1), closes(1))) }},
	{"threads with every record", func(f *forger) {
		f.put(opens(inTask, 1))
		f.again(aThread(1, record(kcdata.TypeLinuxSyscall, kcdata.LinuxSyscall{}), record(kcdata.TypeLinuxThreadIO, kcdata.LinuxThreadIO{}),
			record(kcdata.TypeLinuxUserWalk, kcdata.LinuxUserWalk{Flags: ^uint32(0)}), record(kcdata.TypeLinuxSample, kcdata.LinuxSample{}),
			text(kcdata.TypeThreadName, "\x01\x02\x03")))
	}},
	{"threads named at length", func(f *forger) {
		f.put(opens(inTask, 1))
		f.again(aThread(1, text(kcdata.TypeThreadName, strings.Repeat("\x01", 4<<10)), text(kcdata.TypeLinuxWchan, strings.Repeat("\x01", 4<<10))))
	}},
	{"threads that wait in a ring", func(f *forger) { waiting(f, func(i, n uint32) uint32 { return i%n + 1 }) }},
	{"threads that wait in pairs", func(f *forger) { waiting(f, func(i, n uint32) uint32 { return (i - 1) ^ 1 + 1 }) }},
	{"threads that wait for one", func(f *forger) { waiting(f, func(i, n uint32) uint32 { return n }) }},
	{"a million empty containers", func(f *forger) { f.again(join(opens(0x7777, 1), closes(1))) }},
	{"a million empty containers in a task", func(f *forger) { f.put(opens(inTask, 1)); f.again(join(opens(0x7777, 1), closes(1))) }},
	{"deep nesting", func(f *forger) {
		var in, out []byte
		for range kcdata.MaxDepth - 1 {
			in, out = join(in, opens(inTask, 1)), join(closes(1), out)
		}
		f.again(join(in, out))
	}},
	{"nested too deep", func(f *forger) { f.again(opens(inTask, 1)) }},
	{"buffers in buffers", func(f *forger) {
		end := f.size + 16 + f.rest()
		for f.rest() > 1<<20 && f.size < 1000 {
			f.put(item(kcdata.TypeNested, 0, f.rest()))
			f.put(item(kcdata.MagicStackshot, 0, 0))
		}
		for f.size < end {
			f.put(item(kcdata.BufferEnd, 0, 0))
		}
	}},
	{"definitions of many types", func(f *forger) {
		for i := range 5000 {
			f.put(definition(kcdata.Type(0x10000+i), 1, func(int) (kcdata.ElemType, int, int, int) { return kcdata.ElemUint8, 0, 1, 0 }))
		}
		f.again(definition(0x7777, 1, func(int) (kcdata.ElemType, int, int, int) { return kcdata.ElemUint8, 0, 1, 0 }))
	}},
	{"definitions of many fields", func(f *forger) {
		for i := 0; f.rest() > 2<<20; i++ {
			f.put(definition(kcdata.Type(0x10000+i), 4000, func(j int) (kcdata.ElemType, int, int, int) { return kcdata.ElemUint8, j, 1, 0 }))
		}
	}},
	{"a definition of a million absent fields", func(f *forger) {
		f.put(definition(0x7777, f.rest()/41, func(j int) (kcdata.ElemType, int, int, int) { return kcdata.ElemUint8, 0, 1, 1 }))
	}},
	{"an array with a line for each byte", func(f *forger) {
		f.put(definition(0x7777, 1, func(int) (kcdata.ElemType, int, int, int) { return kcdata.ElemUint8, 0, 1, 0 }))
		f.payload(kcdata.TypeArrayPad0, 0x7777<<32|uint64(f.rest()&^15), f.rest(), []byte{7})
	}},
	{"a huge host name", func(f *forger) { f.payload(kcdata.TypeLinuxHostname, 0, f.rest(), []byte{1}) }},
	{"a million host names", func(f *forger) { f.again(text(kcdata.TypeLinuxHostname, "host")) }},
	{"a huge description", func(f *forger) {
		f.payload(kcdata.TypeStringDesc, 0, f.rest(), append(append([]byte("name"), make([]byte, 28)...), 1))
	}},
	{"a command line of NULs", func(f *forger) {
		f.put(opens(inTask, 1))
		f.payload(kcdata.TypeLinuxCmdline, 0, f.rest(), []byte{0})
		f.put(closes(1))
	}},
	{"a command line of a million arguments", func(f *forger) {
		f.put(opens(inTask, 1))
		f.payload(kcdata.TypeLinuxCmdlineSeen, 0, f.rest(), []byte("\x01\x00"))
		f.put(closes(1))
	}},
	{"a million warnings", func(f *forger) { f.again(text(kcdata.TypeLinuxWarning, "c: \x01")) }},
	{"huge warnings", func(f *forger) { f.again(text(kcdata.TypeLinuxWarning, strings.Repeat("\x01", 16<<10))) }},
	{"a million reasons", func(f *forger) { f.put(opens(inTask, 1)); f.again(text(kcdata.TypeLinuxEnrichFailed, "\x01")) }},
	{"a million problems", func(f *forger) { f.again(join(opens(inThread, 1), closes(1))) }},
	{"pieces of stacks", func(f *forger) {
		f.put(join(opens(inTask, 1), opens(inThread, 1)))
		f.again(item(kcdata.TypeLinuxUserBytes, 0, 16, make([]byte, 16)...))
	}},
	{"zeros", func(f *forger) { f.again(make([]byte, 64<<10)) }},
}
