package latency

import (
	"math/bits"

	"stackshot/kcdata"
)

// ticks turns Apple's latencies into ns.
type ticks struct{ numer, denom uint64 }

// ticksOf reports false if the file has no usable time base: the length of its latencies
// is then unknown.
func ticksOf(s *kcdata.Snapshot) (t ticks, ok bool) {
	if s.Timebase == nil || s.Timebase.Numer == 0 || s.Timebase.Denom == 0 {
		return ticks{}, false
	}
	return ticks{uint64(s.Timebase.Numer), uint64(s.Timebase.Denom)}, true
}

// ns is the sum of latencies, in ns. A product that needs more than 64 bits gives the
// greatest number.
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

// sum adds up. If the result does not fit, it is the greatest number: no file can make a sum
// small by making its parts large.
func sum(parts ...uint64) (total uint64) {
	for _, v := range parts {
		var carry uint64
		if total, carry = bits.Add64(total, v, 0); carry != 0 {
			return 1<<64 - 1
		}
	}
	return total
}
