package kcdata

import "encoding/binary"

// topItem files an item that stands outside all containers.
func (p *snapshotParser) topItem(it Item) {
	s := p.s
	of := it.Of()
	if of == TypeArray {
		p.topArray(it)
		return
	}
	if dst := s.stringField(of); dst != nil {
		*dst = p.text(it, maxText)
		return
	}
	switch of {
	case TypeLinuxMachine:
		s.HasMachine = p.record(it, &s.Machine)
	case TypeLinuxCapture:
		s.HasCapture = p.record(it, &s.Capture)
	case TypeLinuxKernelBuild:
		s.KernelBuild = append([]byte(nil), it.Data[:min(len(it.Data), maxBuildID)]...)
	case TypeLinuxStrings:
		p.strings = it.Data
	case TypeLinuxWarning:
		p.warning(it)
	case TypeKernPageSize:
		if len(it.Data) >= 4 {
			s.PageSize = binary.LittleEndian.Uint32(it.Data)
		}
	case TypeTimebase:
		optional(p, it, &s.Timebase)
	case TypeDuration:
		optional(p, it, &s.Duration)
	case TypeLatencyInfo:
		optional(p, it, &s.Latency)
	case TypeLinuxAtomicity:
		optional(p, it, &s.Atomicity)
	case TypeLinuxUserTaken:
		optional(p, it, &s.UserTaken)
	}
}

// stringField returns where a top-level string item goes, nil: not a string.
func (s *Snapshot) stringField(t Type) *string {
	switch t {
	case TypeLinuxHostname:
		return &s.Hostname
	case TypeLinuxRelease:
		return &s.Release
	case TypeOSVersion:
		return &s.Version
	case TypeLinuxArch:
		return &s.Arch
	case TypeLinuxBootID:
		return &s.BootID
	case TypeBootArgs:
		return &s.BootArgs
	case TypeLinuxEngine:
		return &s.Engine
	case TypeLinuxIsolation:
		return &s.Isolation
	case TypeLinuxRequest:
		return &s.Request
	case TypeLinuxToolVersion:
		return &s.ToolVersion
	case TypeLinuxLoadavg:
		return &s.Loadavg
	case TypeLinuxMeminfo:
		return &s.Meminfo
	case TypeLinuxPressure:
		return &s.Pressure
	}
	return nil
}

func (p *snapshotParser) topArray(it Item) {
	switch arrayElem(it) {
	case TypeLinuxCPU:
		array(p, it, &p.s.CPUs)
	case TypeLatencyInfoCPU:
		array(p, it, &p.s.LatencyCPUs)
	case TypeLinuxRan:
		array(p, it, &p.s.Ran)
	case TypeLinuxPhases:
		array(p, it, &p.s.Phases)
	case TypeLinuxArena:
		array(p, it, &p.s.Arenas)
	case TypeLinuxTry:
		array(p, it, &p.s.Tries)
	case TypeLinuxTrace:
		array(p, it, &p.s.Trace)
	case TypeLinuxModule:
		array(p, it, &p.modules)
	case TypeLinuxLeftOut:
		array(p, it, &p.s.LeftOut)
	case TypeLinuxSymbol:
		array(p, it, &p.symbols)
	}
}

// taskItem files an item that stands in a TASK or TRANSITIONING_TASK.
func (p *snapshotParser) taskItem(it Item) {
	t := p.task
	switch it.Of() {
	case TypeTaskSnapshot:
		if t.HasSnapshot = p.record(it, &t.Snapshot); t.HasSnapshot {
			t.Name = cString(t.Snapshot.Comm[:])
		}
	case TypeTransitioningSnapshot:
		optional(p, it, &t.Exiting)
		if t.Exiting != nil {
			t.Name = cString(t.Exiting.Comm[:])
		}
	case TypeLinuxTask:
		t.HasLinux = p.record(it, &t.Linux)
	case TypeLinuxTaskMemory:
		optional(p, it, &t.Memory)
	case TypeLinuxTaskNS:
		optional(p, it, &t.NS)
	case TypeLinuxTaskExe:
		optional(p, it, &t.Exe)
	case TypeCrashProcPath, TypeLinuxExePath:
		t.ExePath = p.text(it, maxText)
	case TypeLinuxCmdline:
		t.Cmdline = p.cmdline(it.Data)
	case TypeLinuxCgroupPath:
		t.Cgroup = p.text(it, maxText)
	case TypeLinuxEnrichFailed:
		p.notRead(it)
	case TypeLatencyInfoTask:
		optional(p, it, &t.Latency)
	case TypeLinuxPerfMap:
		t.PerfMap = p.text(it, maxText)
	case TypeLinuxCmdlineSeen:
		p.user.cmdline = it.Data
	case TypeLinuxMapName:
		p.mapName(it)
	case TypeLinuxMapWalk:
		optional(p, it, &t.MapWalk)
	case TypeLinuxMapStrings:
		p.user.strings = it.Data
	case TypeArray:
		switch arrayElem(it) {
		case TypeLinuxMapping:
			array(p, it, &p.user.mappings)
		case TypeLinuxUserSymbol:
			array(p, it, &p.user.symbols)
		}
	}
}

// threadItem files an item that stands in a THREAD.
func (p *snapshotParser) threadItem(it Item) {
	t := p.thread
	switch it.Of() {
	case TypeThreadSnapshot:
		t.HasSnapshot = p.record(it, &t.Snapshot)
	case TypeThreadName:
		t.Name = p.text(it, maxText)
	case TypeLinuxWchan:
		t.Wchan = p.text(it, maxText)
	case TypeCPUTimes:
		optional(p, it, &t.Times)
	case TypeLinuxThread:
		t.HasLinux = p.record(it, &t.Linux)
	case TypeLinuxSyscall:
		optional(p, it, &t.Syscall)
	case TypeLinuxThreadIO:
		optional(p, it, &t.IO)
	case TypeLinuxDelays:
		optional(p, it, &t.Delays)
	case TypeLinuxSignals:
		optional(p, it, &t.Signals)
	case TypeLinuxSample:
		optional(p, it, &t.Sample)
	case TypeLatencyInfoThread:
		optional(p, it, &t.Latency)
	case TypeLinuxUserWalk:
		optional(p, it, &t.UserWalk)
	case TypeLinuxUserHow:
		if p.take(int64(len(it.Data)), "item %#x, %d bytes", uint32(it.Type), len(it.Data)) {
			t.UserHow = append([]byte(nil), it.Data...)
		}
	case TypeLinuxUserBytes:
		p.userBytes(it)
	case TypeArray:
		p.threadArray(it)
	}
}

func (p *snapshotParser) threadArray(it Item) {
	switch arrayElem(it) {
	case TypeKernStackLR64:
		p.addresses(it, &p.thread.Kernel, p.kernel, kernelPlaceCost)
	case TypeUserStackLR64:
		p.addresses(it, &p.thread.User, p.user.places, userPlaceCost)
	case TypeLinuxRegisters:
		p.addresses(it, &p.thread.Registers, nil, 0)
	case TypeLinuxThreadNS:
		array(p, it, &p.thread.NS)
	case TypeLinuxUserChain:
		array(p, it, &p.thread.UserChain)
	}
}
