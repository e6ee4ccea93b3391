package latency

import (
	"errors"
	"testing"

	"stackshot/kcdata"
)

// The stories are whole files, laid down by the writer and decoded again: what
// is measured is always what a file can say.

const (
	us     = uint64(1e3)
	ms     = uint64(1e6)
	second = uint64(1e9)
	// stop is CLOCK_MONOTONIC at the stop; CPU n's runqueue clock is behind it by
	// rqBehind[n].
	stop = 100 * 3600 * second
)

var rqBehind = [...]uint64{5 * second, 7000 * second}

// script writes one file.
type script struct {
	*kcdata.Writer
	err error
}

func newScript() *script {
	s := &script{Writer: kcdata.NewWriter(make([]byte, 1<<17))}
	s.do(s.Begin(kcdata.MagicStackshot))
	return s
}

func (s *script) do(errs ...error) { s.err = errors.Join(append(errs, s.err)...) }

// bytes ends the file.
func (s *script) bytes() []byte {
	s.do(s.End())
	if s.err != nil {
		panic(s.err)
	}
	return s.Written()
}

func decoded(t testing.TB, file []byte) *kcdata.Snapshot {
	t.Helper()
	s, err := kcdata.ParseSnapshot(file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// machine is whose file it is.
func (s *script) machine(host, engine, isolation string) {
	s.do(
		s.Struct(kcdata.TypeTimebase, kcdata.Timebase{Numer: 1, Denom: 1}),
		s.Struct(kcdata.TypeLinuxMachine, kcdata.LinuxMachine{RealtimeNs: 1_795_000_000 * second, MonotonicNs: stop, PidNSIsFirst: 1}),
		s.String(kcdata.TypeLinuxHostname, host), s.String(kcdata.TypeLinuxRelease, "6.18.44"), s.String(kcdata.TypeLinuxArch, "x86_64"),
		s.String(kcdata.TypeLinuxEngine, engine), s.String(kcdata.TypeLinuxIsolation, isolation))
}

// cpus are two that were stopped; their clocks were read 50 us after.
func (s *script) cpus() {
	var cpus []kcdata.LinuxCPU
	for n, behind := range rqBehind {
		cpus = append(cpus, kcdata.LinuxCPU{
			CPU: uint32(n), Flags: kcdata.CPUStopped | kcdata.CPUWorked, ArriveNs: stop + uint64(n)*36*us, ReleaseNs: stop + 900*us,
			RqClock: stop + 50*us - behind, RqClockAt: stop + 50*us, Threads: 3 - uint32(n),
		})
	}
	s.do(s.StructArray(kcdata.TypeLinuxCPU, cpus))
}

// role is one thread: who, what it does, and since when.
type role struct {
	tid     uint32
	name    string
	cpu     uint32
	state   uint32
	present uint64 // beside what is always there
	queued  uint64 // ns before the stop; 0: not queued
	slept   uint64 // ns before the stop it left its CPU; it had come 1 ms earlier
	delay   uint64
	times   uint64
	stack   []uint64
	latency *kcdata.LatencyThread
}

// ago is a stamp of CPU n's runqueue clock.
func ago(n uint32, ns uint64) uint64 { return stop - rqBehind[n] - ns }

func (s *script) thread(tgid uint32, r role) {
	l := kcdata.LinuxThread{
		Present: kcdata.ThreadHasOnCPU | kcdata.ThreadHasRuntime | r.present, Tid: r.tid, Tgid: tgid, State: r.state, CPU: r.cpu,
		RunDelay: r.delay, Pcount: r.times,
	}
	if r.queued+r.slept > 0 {
		l.Present |= kcdata.ThreadHasSchedInfo
		l.LastArrival, l.ExecStart = ago(r.cpu, r.queued+r.slept+ms), ago(r.cpu, r.queued+r.slept)
	}
	if r.queued > 0 {
		l.LastQueued = ago(r.cpu, r.queued)
	}
	s.do(s.BeginContainer(kcdata.TypeThread, uint64(r.tid)), s.Struct(kcdata.TypeLinuxThread, l),
		s.Bytes(kcdata.TypeThreadName, append([]byte(r.name), 0)))
	if len(r.stack) > 0 {
		s.do(s.Uint64s(kcdata.TypeKernStackLR64, r.stack))
	}
	if r.latency != nil {
		s.do(s.Struct(kcdata.TypeLatencyInfoThread, *r.latency))
	}
	s.do(s.EndContainer(uint64(r.tid)))
}

func (s *script) task(pid uint32, name string, present uint64, cost *kcdata.LatencyTask, threads ...role) {
	head := kcdata.TaskSnapshot{Pid: int32(pid)}
	copy(head.Comm[:], name)
	s.do(s.BeginContainer(kcdata.TypeTask, uint64(pid)), s.Struct(kcdata.TypeTaskSnapshot, head),
		s.Struct(kcdata.TypeLinuxTask, kcdata.LinuxTask{Present: present, Tgid: pid}))
	for _, r := range threads {
		s.thread(pid, r)
	}
	if cost != nil {
		s.do(s.Struct(kcdata.TypeLatencyInfoTask, *cost))
	}
	s.do(s.EndContainer(uint64(pid)))
}

// names are the symbols of the stories, from 0x1000 on.
func (s *script) names(symbols ...string) {
	strs := []byte{0}
	var records []kcdata.LinuxSymbol
	for i, name := range symbols {
		records = append(records, kcdata.LinuxSymbol{Addr: 0x1000 * uint64(i+1), Name: uint32(len(strs)), Offset: 9})
		strs = append(append(strs, name...), 0)
	}
	s.do(s.StructArray(kcdata.TypeLinuxSymbol, records), s.Bytes(kcdata.TypeLinuxStrings, strs))
}
