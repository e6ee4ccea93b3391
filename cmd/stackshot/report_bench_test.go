package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"stackshot/internal/report"
	"stackshot/kcdata"
)

// manyThreads is a file of tasks with threads each, whose stacks have 12 kernel frames and 16 user
// frames with names; twenty depths of recursion, and one of five system calls.
func manyThreads(tb testing.TB, tasks, threads int) string {
	tb.Helper()
	w := kcdata.NewWriter(make([]byte, 128<<20))
	names := []byte{0}
	name := func(s string) uint32 {
		at := len(names)
		names = append(append(names, s...), 0)
		return uint32(at)
	}
	var kernel []kcdata.LinuxSymbol
	var user []kcdata.LinuxUserSymbol
	for i := range uint64(60) {
		kernel = append(kernel, kcdata.LinuxSymbol{Addr: 0xffffffff81000000 + i<<12, Name: name(fmt.Sprintf("kernel_function_%d", i))})
	}
	kernelNames := names
	names = []byte{0}
	for i := range uint64(60) {
		user = append(user, kcdata.LinuxUserSymbol{Addr: 0x400000 + i<<8, Name: name(fmt.Sprintf("user_function_%d", i)), Module: 1})
	}
	errs := []error{
		w.Begin(kcdata.MagicStackshot), w.Struct(kcdata.TypeLinuxMachine, kcdata.LinuxMachine{RealtimeNs: 1e18}), w.String(kcdata.TypeLinuxArch, "x86_64"),
		w.StructArray(kcdata.TypeLinuxCPU, []kcdata.LinuxCPU{{Flags: kcdata.CPUStopped, RqClock: 1e15, RqClockAt: 1e15}}),
		w.StructArray(kcdata.TypeLinuxSymbol, kernel), w.Bytes(kcdata.TypeLinuxStrings, kernelNames),
	}
	for task := range tasks {
		pid := uint64(1000 + task*threads)
		errs = append(errs, w.BeginContainer(kcdata.TypeTask, pid), w.Struct(kcdata.TypeLinuxTask, kcdata.LinuxTask{Present: kcdata.TaskHasIDs, Tgid: uint32(pid), Ppid: 1}),
			w.String(kcdata.TypeLinuxCgroupPath, fmt.Sprintf("/system.slice/worker-%d.service", task%7)))
		for i := range threads {
			tid, of := pid+uint64(i), uint64(task+i)
			var lr, ulr [16]uint64
			for n := range lr {
				lr[n], ulr[n] = 0xffffffff81000000+((of%5+uint64(n))%60)<<12, 0x400000+((of%20+uint64(n))%60)<<8
			}
			th := kcdata.LinuxThread{Present: kcdata.ThreadHasSchedInfo | kcdata.ThreadHasStack | kcdata.ThreadHasRuntime, Tid: uint32(tid), Tgid: uint32(pid), State: 1, LastArrival: 1e12 + of*1e6, SumExecRuntime: of}
			errs = append(errs, w.BeginContainer(kcdata.TypeThread, tid), w.Struct(kcdata.TypeLinuxThread, th),
				w.Uint64s(kcdata.TypeKernStackLR64, lr[:12]), w.Struct(kcdata.TypeLinuxSyscall, kcdata.LinuxSyscall{Nr: int64(of % 5)}),
				w.Uint64s(kcdata.TypeUserStackLR64, ulr[:]), w.Struct(kcdata.TypeLinuxUserWalk, kcdata.LinuxUserWalk{Flags: kcdata.UserUnwound | kcdata.UserComplete}),
				w.EndContainer(tid))
		}
		errs = append(errs, w.StructArray(kcdata.TypeLinuxUserSymbol, user), w.Bytes(kcdata.TypeLinuxMapStrings, names), w.EndContainer(pid))
	}
	errs = append(errs, w.Struct(kcdata.TypeLinuxCapture, kcdata.LinuxCapture{Tries: 1}), w.End())
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}
	var packed bytes.Buffer
	file := filepath.Join(tb.TempDir(), "many.kcdata.zst")
	if err := errors.Join(kcdata.Compress(&packed, w.Written(), kcdata.EnvelopeZstd), os.WriteFile(file, packed.Bytes(), 0o600)); err != nil {
		tb.Fatal(err)
	}
	return file
}

// head is a reader that goes away after ten lines, as `head` does.
type head struct{ lines int }

var errGone = errors.New("the reader is gone")

func (h *head) Write(p []byte) (int, error) {
	if h.lines += bytes.Count(p, []byte("\n")); h.lines >= 10 {
		return 0, errGone
	}
	return len(p), nil
}

// processTime is the CPU time of this process, in ns. A busy machine does not lengthen it much.
func processTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkReport20000Head is `stackshot report FILE | head` for 20,000 threads: of one process, and
// of 2,000. Reading, judging and the look for names that are missing count.
func BenchmarkReport20000Head(b *testing.B) {
	for _, c := range []struct{ tasks, threads int }{{1, 20_000}, {2_000, 10}} {
		file := manyThreads(b, c.tasks, c.threads)
		for _, by := range report.Groupings {
			b.Run(fmt.Sprintf("%dx%d/%s", c.tasks, c.threads, by), func(b *testing.B) {
				b.ReportAllocs()
				before := processTime(b)
				for b.Loop() {
					r := &reporting{format: "text", o: report.Options{GroupBy: report.Grouping(by)}}
					if err := r.show(b.Context(), &head{}, file); !errors.Is(err, errGone) {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(processTime(b)-before)/1e6/float64(b.N), "cpu-ms/op")
			})
		}
	}
}
