package latency

import "slices"

// Dist is the distribution of measured values: order statistics (nearest
// rank), so each figure is one of the values (L3). All figures are 0 if Count is 0.
type Dist struct {
	Name  string `json:"name"`
	Unit  string `json:"unit"` // UnitNs or UnitCount
	Count int    `json:"count"`
	P50   uint64 `json:"p50"`
	P90   uint64 `json:"p90"`
	P99   uint64 `json:"p99"`
	Max   uint64 `json:"max"`
}

// Units of a Dist.
const (
	UnitNs    = "ns"
	UnitCount = "count"
)

// distOf is the distribution of one figure of records. A record that does not have the
// figure (nil) does not count.
func distOf[R any](name, unit string, records []R, figure func(*R) *uint64) Dist {
	var values []uint64
	for i := range records {
		if v := figure(&records[i]); v != nil {
			values = append(values, *v)
		}
	}
	d := Dist{Name: name, Unit: unit, Count: len(values)}
	if len(values) == 0 {
		return d
	}
	slices.Sort(values)
	d.P50, d.P90, d.P99 = rank(values, 50), rank(values, 90), rank(values, 99)
	d.Max = values[len(values)-1]
	return d
}

// rank is the smallest value that at least percent % of all values do not exceed.
func rank(sorted []uint64, percent int) uint64 {
	n := (len(sorted)*percent + 99) / 100
	return sorted[max(n, 1)-1]
}
