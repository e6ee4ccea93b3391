package panicregion

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// States of a region (internal/bpf/panic.h, enum panic_state).
const (
	StateFree  = 0 // no walk, or what it recorded is saved
	StateTaken = 1 // a walk has it, or had it when the machine died
	StateDone  = 2 // a SysRq's walk is over, and nobody has saved it
	StateLeft  = 3 // a panic's walk is over
)

// Outcomes of a walk (enum panic_outcome).
const (
	InProgress = 0 // it did not end; what is recorded up to Bytes is whole
	Whole      = 1
	NoRoom     = 2
	OutOfTime  = 3
)

// What began a walk (enum panic_hook).
const (
	HookSysrq = 1
	HookPanic = 2
	HookCrash = 3 // crash_kexec of an oops, which does not come to panic()
)

// Walk is what a walk says of itself: struct panic_run of internal/bpf/panic.h, where each field
// is explained.
type Walk struct {
	State, Nested, Lost         uint64
	Hook, Outcome               uint32
	Key, Checked                uint32
	CPU, Tid, Tgid, Level       uint32
	Began, Ended                uint64 // CLOCK_MONOTONIC, ns
	BeganBoot                   uint64 // CLOCK_BOOTTIME, ns
	Bytes, Open                 uint64
	Tasks, Threads, Idle, Texts uint32
	Live, Followed              uint32
	Caller                      uint64 // of panic(), where the stack lacks it; 0: it is in the stack
	Comm                        string
	Args                        [6]uint64
	Format                      string
	Text                        [4]string
	Sum, Computed               uint64 // of a walk that ended: equal, unless the head is damaged
	formatWhole                 bool
	textWhole                   [4]bool
}

// rawWalk is struct panic_run as it lies in memory.
type rawWalk struct {
	State, Nested, Lost                                uint64
	Pad0                                               [13]uint64
	Hook, Outcome, Key, Checked, CPU, Tid, Tgid, Level uint32
	Began, Ended, BeganBoot, Bytes, Open               uint64
	Tasks, Threads, Idle, Texts, Live, Followed        uint32
	Comm                                               [16]byte
	Args                                               [6]uint64
	Format                                             [128]byte
	Text                                               [4][64]byte
	Caller, Sum                                        uint64
}

// walkSumFrom is where the words begin that Sum is of: at Hook.
const walkSumFrom = 128

// WalkBytes is the size of struct panic_run.
var WalkBytes = binary.Size(rawWalk{})

// ReadWalk reads what the walk says in a head. An error, of kind ErrDamaged, says what contradicts
// itself; then the walk is there too, as far as it can be read. It is nil only for a head that is
// too short.
func ReadWalk(head []byte) (*Walk, error) {
	if len(head) < RunAt+WalkBytes {
		return nil, fmt.Errorf("%w: head of %d bytes", ErrDamaged, len(head))
	}
	b := head[RunAt : RunAt+WalkBytes]
	var r rawWalk
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, &r); err != nil {
		return nil, err
	}
	w := &Walk{
		State: r.State, Nested: r.Nested, Lost: r.Lost, Hook: r.Hook, Outcome: r.Outcome, Key: r.Key, Checked: r.Checked,
		CPU: r.CPU, Tid: r.Tid, Tgid: r.Tgid, Level: r.Level, Began: r.Began, Ended: r.Ended, BeganBoot: r.BeganBoot,
		Bytes: r.Bytes, Open: r.Open, Tasks: r.Tasks, Threads: r.Threads, Idle: r.Idle, Texts: r.Texts, Live: r.Live, Followed: r.Followed, Caller: r.Caller,
		Args: r.Args, Sum: r.Sum, Computed: walkSum(b),
	}
	w.Comm, _ = cString(r.Comm[:])
	w.Format, w.formatWhole = cString(r.Format[:])
	for i := range r.Text {
		w.Text[i], w.textWhole[i] = cString(r.Text[i][:])
	}
	return w, w.check()
}

// check holds the walk's words against each other. A walk that did not end has no sum yet.
func (w *Walk) check() error {
	switch {
	case w.State > StateLeft || w.Outcome > OutOfTime || w.State != StateFree && (w.Hook < HookSysrq || w.Hook > HookCrash):
		return fmt.Errorf("%w: words of the walk: state %d, begun by %d, outcome %d", ErrDamaged, w.State, w.Hook, w.Outcome)
	case w.Ran() && w.Outcome != InProgress && w.Sum != 0 && w.Sum != w.Computed,
		(w.State == StateDone || w.State == StateLeft) && w.Sum != w.Computed:
		return fmt.Errorf("%w: words of the walk: checksum %#x, computed %#x", ErrDamaged, w.Sum, w.Computed)
	}
	return nil
}

// Torn reports whether the words of a walk that ended are not what it wrote.
func (w *Walk) Torn() bool { return w.check() != nil }

// Ran reports whether a walk has, or had, the region and nobody has saved what it recorded.
func (w *Walk) Ran() bool { return w.State != StateFree }

// walkSum is sum_run of internal/bpf/panic_walk.h: FNV-1a over words of 8 bytes.
func walkSum(b []byte) uint64 {
	sum := uint64(0xcbf29ce484222325)
	for at := walkSumFrom; at < len(b)-8; at += 8 {
		sum = (sum ^ binary.LittleEndian.Uint64(b[at:])) * 0x100000001b3
	}
	return sum
}

// cString is the text up to the NUL. whole: it fits; else it fills its room, and may have been longer.
func cString(b []byte) (s string, whole bool) {
	n := bytes.IndexByte(b, 0)
	if n < 0 {
		return string(b), false
	}
	return string(b[:n]), n < len(b)-1
}
