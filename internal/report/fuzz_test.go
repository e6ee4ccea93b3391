package report

import (
	"errors"
	"fmt"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/testheap"
	"stackshot/kcdata"
)

// seedFile is a small file with a task, a thread, names and a symbol.
func seedFile() []byte {
	w := kcdata.NewWriter(make([]byte, 1<<14))
	err := errors.Join(
		w.Begin(kcdata.MagicStackshot),
		w.Struct(kcdata.TypeLinuxMachine, kcdata.LinuxMachine{RealtimeNs: 1e18}),
		w.String(kcdata.TypeLinuxHostname, "h\x1b"), w.String(kcdata.TypeLinuxArch, "x86_64"),
		w.String(kcdata.TypeLinuxMeminfo, "MemTotal: 9 kB\nMemAvailable: 7 kB\n"), w.String(kcdata.TypeLinuxPressure, "cpu some avg10=1.00 avg60=0.00"),
		w.StructArray(kcdata.TypeLinuxCPU, []kcdata.LinuxCPU{{Flags: kcdata.CPUMissed | kcdata.CPURanKnown, RanTgid: 7, RqClock: 1e12}}),
		w.StructArray(kcdata.TypeLinuxSymbol, []kcdata.LinuxSymbol{{Addr: 16, Name: 1, Module: 1}}), w.Bytes(kcdata.TypeLinuxStrings, []byte("\x00f\xffn\x00")),
		w.BeginContainer(kcdata.TypeTask, 7), w.Struct(kcdata.TypeTaskSnapshot, kcdata.TaskSnapshot{}), w.Struct(kcdata.TypeLinuxTask, kcdata.LinuxTask{Present: 1}),
		w.Bytes(kcdata.TypeLinuxCmdline, []byte("a\x00\nb\x00")),
		w.BeginContainer(kcdata.TypeThread, 7), w.Struct(kcdata.TypeLinuxThread, kcdata.LinuxThread{Present: 0x7ff, State: 2, LastArrival: 5}),
		w.Uint64s(kcdata.TypeKernStackLR64, []uint64{16, 17}), w.Struct(kcdata.TypeLinuxSyscall, kcdata.LinuxSyscall{Nr: 1}),

		w.Uint64s(kcdata.TypeUserStackLR64, []uint64{0x77, 0x79, 3}), w.Bytes(kcdata.TypeLinuxUserHow, []byte{1, 3, 9}), w.Struct(kcdata.TypeLinuxUserWalk, kcdata.LinuxUserWalk{Flags: 0xfc}),
		w.EndContainer(7),
		w.StructArray(kcdata.TypeLinuxMapping, []kcdata.LinuxMapping{{Start: 0x70, End: 0x80, Path: 1, BuildIDLen: 1}}),
		w.StructArray(kcdata.TypeLinuxUserSymbol, []kcdata.LinuxUserSymbol{{Addr: 0x77, Name: 5, Module: 1, Line: 3}, {Addr: 0x77, Name: 9, File: 1}}),
		w.Bytes(kcdata.TypeLinuxMapStrings, []byte("\x00/b\x1b\x00m;\n\x00r_[k]\x00")),
		w.EndContainer(7),
		w.StructArray(kcdata.TypeLinuxLeftOut, []kcdata.LinuxLeftOut{{Tgid: 9, Reason: 77}}), w.String(kcdata.TypeLinuxWarning, "x: y"),
		w.Struct(kcdata.TypeLinuxCapture, kcdata.LinuxCapture{StopBroken: 2, LeftOut: 9}), w.End())
	if err != nil {
		panic(err)
	}
	return w.Written()
}

// FuzzReport: whatever the file, no panic, and the output may be sent to any
// terminal (R2).
func FuzzReport(f *testing.F) {
	f.Add(seedFile(), 0, 80, false)
	f.Add(seedFile(), 7, 0, true)
	for i := range 5 { // each Grouping with an Order
		f.Add(seedFile(), i*6, 80+i, false)
	}
	f.Fuzz(func(t *testing.T, file []byte, pid, width int, self bool) {
		testheap.Bound(t, maxFuzzHeap, fmt.Sprintf("a file of %d bytes", len(file)), func() { everyFormat(t, file, pid, width, self) })
	})
}

// maxFuzzHeap bounds what a small file can make us hold, and garbage as much again.
const maxFuzzHeap = 128 << 20

func everyFormat(t *testing.T, file []byte, pid, width int, self bool) {
	s, _ := kcdata.ParseSnapshot(file)
	if s == nil {
		return
	}
	o := Options{Width: width % 500, ShowSelf: self, GroupBy: groupings()[uint(width)%5], SortBy: append([]Order{""}, ByAge, ByName, ByThreads, ByCPU)[uint(pid)%5]}
	if pid != 0 {
		o.Only, o.Absent = ofTasks(s, pid), []uint64{uint64(pid)}
	}
	if s.ThreadCount() < 1000 { // folded stacks and profile look every thread up
		checkForms(t, s, o)
		return
	}
	golden.Showable(t, []byte(textOf(t, s, o)))
	golden.Showable(t, jsonOf(t, s, o))
}
