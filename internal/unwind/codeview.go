package unwind

const (
	maxInstruction = 15 // bytes
	maxWindows     = 8  // pieces of code of maxCode bytes that one question reads
)

// codeView is the code of a file, by link-time address, as one question needs it:
// jumps lead out of what was read first. Used by one goroutine.
type codeView struct {
	t       *Table
	windows []codeWindow
	err     error // of reading
}

type codeWindow struct {
	start uint64
	data  []byte
}

// decode reads the instruction at addr; false: there is none that is known.
func (v *codeView) decode(addr uint64) (instruction, bool) { return decode(v.from(addr)) }

// from is the code from addr on: a whole instruction, unless the segment ends there.
func (v *codeView) from(addr uint64) []byte {
	for _, w := range v.windows {
		off := addr - w.start
		if n := uint64(len(w.data)); off < n && (n-off >= maxInstruction || n < maxCode) {
			return w.data[off:]
		}
	}
	if v.err != nil || len(v.windows) == maxWindows {
		return nil
	}
	data, err := v.t.codeAt(addr, maxCode)
	if err != nil {
		v.err = err
		return nil
	}
	v.windows = append(v.windows, codeWindow{addr, data})
	return data
}

// target is where a jump at addr leads.
func (in instruction) target(addr uint64) uint64 {
	return addr + uint64(in.next) + uint64(in.value)
}
