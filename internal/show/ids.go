package show

import "fmt"

// Hex is an address or a 64-bit id as JSON has it: text, because readers there
// may keep numbers as doubles, which lose the low bits.
type Hex uint64

// MarshalText writes "0x1f".
func (h Hex) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#x", uint64(h)), nil }

// Number is a container id as the pid or tid it is; nil for the idle threads of
// CPUs, which have none.
func Number(id uint64) *uint32 {
	if id >= 1<<32 {
		return nil
	}
	n := uint32(id)
	return &n
}
