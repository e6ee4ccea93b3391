package latency

import (
	"math/bits"

	"stackshot/kcdata"
)

// ticks turns Apple's latencies into ns.
type ticks struct{ numer, denom uint64 }

// ticksOf reports ok false where the file has no time base that can be used: its
// latencies are then of no known length.
func ticksOf(s *kcdata.Snapshot) (t ticks, ok bool) {
	if s.Timebase == nil || s.Timebase.Numer == 0 || s.Timebase.Denom == 0 {
		return ticks{}, false
	}
	return ticks{uint64(s.Timebase.Numer), uint64(s.Timebase.Denom)}, true
}

// ns is the sum of latencies, in ns.
func (t ticks) ns(parts ...uint64) (total uint64) {
	for _, v := range parts {
		hi, lo := bits.Mul64(v, t.numer)
		if hi >= t.denom {
			return 1<<64 - 1
		}
		q, _ := bits.Div64(hi, lo, t.denom)
		total = sum(total, q)
	}
	return total
}

// sum adds up, and is the greatest number where that has no room for it: no file may
// make a sum small by making its parts large.
func sum(parts ...uint64) (total uint64) {
	for _, v := range parts {
		var carry uint64
		if total, carry = bits.Add64(total, v, 0); carry != 0 {
			return 1<<64 - 1
		}
	}
	return total
}
