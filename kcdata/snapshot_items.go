package kcdata

import (
	"encoding/binary"
	"math"
	"reflect"
)

// Here are the items that do not just fill one field of the model.

// topItem decodes an item that stands outside of all containers.
func (p *snapshotParser) topItem(it Item) {
	s := p.s
	of, isArray := it.kind()
	if p.fill(reflect.ValueOf(s).Elem(), p.models.snapshot, it, of, isArray) {
		return
	}
	switch {
	case isArray && of == TypeLinuxModule:
		p.array(it, &p.modules)
	case isArray && of == TypeLinuxCgroup:
		p.array(it, &p.cgroups)
	case isArray && of == TypeLinuxSymbol:
		p.array(it, &p.symbols)
	case isArray:
	case of == TypeLinuxKernelBuild:
		s.KernelBuild = append([]byte(nil), it.Data[:min(len(it.Data), maxBuildID)]...)
	case of == TypeLinuxStrings:
		p.strings = it.Data
	case of == TypeLinuxWarning:
		p.warning(it)
	case of == TypeUsecsSinceEpoch && len(it.Data) >= 8 && !s.HasMachine: // a file of Apple's has no other time
		if at := binary.LittleEndian.Uint64(it.Data); at < math.MaxInt64/1000 {
			s.Machine.RealtimeNs = 1000 * at
		}
	case of == TypeKernPageSize && len(it.Data) >= 4:
		s.PageSize = binary.LittleEndian.Uint32(it.Data)
	}
}

// taskItem decodes an item that stands in a TASK or TRANSITIONING_TASK.
func (p *snapshotParser) taskItem(it Item) {
	t := p.task
	of, isArray := it.kind()
	p.fill(reflect.ValueOf(t).Elem(), p.models.task, it, of, isArray)
	switch {
	case isArray && of == TypeLinuxMapping:
		p.array(it, &p.user.mappings)
	case isArray && of == TypeLinuxUserSymbol:
		p.array(it, &p.user.symbols)
	case isArray && (of == TypeThreadDeltaSnapshot || of == TypeNonrunnableTids):
		_, _, n := it.Elem()
		p.still += n
	case isArray:
	case of == TypeTaskSnapshot && t.HasSnapshot:
		t.Name = cString(t.Snapshot.Comm[:])
	case of == TypeTransitioningSnapshot && t.Exiting != nil:
		t.Name = cString(t.Exiting.Comm[:])
	case of == TypeLinuxCmdline:
		t.Cmdline = p.cmdline(it.Data)
	case of == TypeLinuxEnrichFailed:
		p.notRead(it)
	case of == TypeLinuxCmdlineSeen:
		p.user.cmdline = it.Data
	case of == TypeLinuxMapName:
		p.mapName(it)
	case of == TypeLinuxMapStrings:
		p.user.strings = it.Data
	}
}

// threadItem decodes an item that stands in a THREAD.
func (p *snapshotParser) threadItem(it Item) {
	t := p.thread
	of, isArray := it.kind()
	if p.fill(reflect.ValueOf(t).Elem(), p.models.thread, it, of, isArray) {
		return
	}
	switch {
	case isArray && (of == TypeKernStackLR64 || of == TypeKernStackLR || of == TypeKernStackFrame64 || of == TypeKernStackFrame):
		p.addresses(it, &t.Kernel, p.kernel, kernelPlaceCost)
	case isArray && (of == TypeUserStackLR64 || of == TypeUserStackLR || of == TypeUserStackFrame64 || of == TypeUserStackFrame):
		p.addresses(it, &t.User, p.user.places, userPlaceCost)
	case isArray && of == TypeLinuxRegisters:
		p.addresses(it, &t.Registers, nil, 0)
	case isArray:
	case of == TypeLinuxUserHow && p.take(int64(len(it.Data)), "item %#x, %d bytes", uint32(it.Type), len(it.Data)):
		t.UserHow = append([]byte(nil), it.Data...)
	case of == TypeLinuxUserBytes:
		p.userBytes(it)
	}
}
