package screen

import (
	"fmt"

	"stackshot/internal/show"
)

// killerEntry tells of threads in the OOM killer, of no group that was told of.
func (v *view) killerEntry(threads []*thread) (entry, bool) {
	if len(threads) == 0 {
		return entry{}, false
	}
	v.tally(threads)
	words := fmt.Sprintf("out of memory: %s is at the OOM killer", threads[0].name())
	e := entry{threads: len(threads), pid: threads[0].task.ID}
	if n := len(threads) - 1; n > 0 {
		words += fmt.Sprintf(", and %s", show.Count(n, "more thread"))
		e.more = details(namesOf(threads))
	}
	e.line = row(age(threads[0].age), words)
	return e, true
}

// machineMemory is what /proc/meminfo says of the machine's memory.
type machineMemory struct {
	total, available, swap, swapFree uint64
	known, swapKnown                 bool
}

func (v *view) machineMemory() (m machineMemory) {
	var ok [4]bool
	m.total, ok[0] = meminfo(v.s.Meminfo, "MemTotal")
	m.available, ok[1] = meminfo(v.s.Meminfo, "MemAvailable")
	m.swap, ok[2] = meminfo(v.s.Meminfo, "SwapTotal")
	m.swapFree, ok[3] = meminfo(v.s.Meminfo, "SwapFree")
	m.known, m.swapKnown = ok[0] && ok[1] && m.total > 0, ok[2] && ok[3] && m.swap > 0
	return m
}

// scarce reports whether less than 1/part of the memory is available.
func (m *machineMemory) scarce(percent uint64) bool {
	return m.known && m.available < m.total/100*percent
}

func (m *machineMemory) swapFull() bool {
	return m.swapKnown && m.swapFree <= m.swap/100*(100-swapPart)
}

// machineEntry tells of the machine's own memory. threads reclaim, or wait for swap, for no group
// that was told of; told: such a group is what the machine's pressure is of.
func (v *view) machineEntry(threads []*thread, told bool) (entry, bool) {
	m, p := v.machineMemory(), pressureOf(v.s.Pressure, "memory")
	stalled := p.some >= machineSome || p.full >= machineFull
	wrong := m.scarce(scarcePart) && (stalled || len(threads) > 0) || stalled && !told
	minor := p.some >= minorSome && !told || m.scarce(2*scarcePart) && m.swapFull() || m.scarce(scarcePart)
	if !wrong && !minor {
		return entry{}, false
	}
	state := "the machine is short of memory"
	if m.known {
		state = fmt.Sprintf("the machine has %s of %s available", show.Size(m.available), show.Size(m.total))
	}
	if m.swapFull() {
		state += ", its swap is full"
	}
	words := show.Parts{state}
	words.Add("%s", p.words("all its threads", "memory"))
	e := entry{threads: len(threads), minor: !wrong}
	if n := len(threads); n > 0 {
		words.Add("%d %s: %s", n, verb(n, "thread reclaims", "threads reclaim"), threads[0].name())
		v.tally(threads)
		e.more, e.pid = details(namesOf(threads)), threads[0].task.ID
	}
	e.line = row(p.measure(), words.Join("; "))
	return e, true
}
