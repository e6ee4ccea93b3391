package latency

import "stackshot/kcdata"

// Arena is the memory of one cluster: kcdata.LinuxArena.
type Arena struct {
	Cluster   uint32 `json:"cluster"`
	Size      uint64 `json:"size"`
	Used      uint64 `json:"used"`
	SpillOut  uint64 `json:"spill_out"`
	SpillIn   uint64 `json:"spill_in"`
	FreedSize uint64 `json:"freed_size"`
	Reused    uint64 `json:"reused"`
	Overhead  uint64 `json:"overhead"`
	Entries   uint32 `json:"entries"`
	Allocs    uint64 `json:"allocs"`
	Refused   uint64 `json:"refused"`
}

func arenasOf(records []kcdata.LinuxArena) []Arena {
	out := make([]Arena, len(records))
	for i, r := range records {
		out[i] = Arena{
			r.Cluster, r.Size, r.Used, r.SpillOut, r.SpillIn, r.FreedSize, r.Reused, r.Overhead, r.Entries, r.Allocs, r.Refused,
		}
	}
	return out
}
