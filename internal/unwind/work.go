package unwind

import (
	"errors"
	"sync/atomic"
)

// maxWork is what the instructions of all rows of one capture may come to, bytes:
// some seconds. Real ones are some dozen bytes a row; but a program may have 64 KiB
// for each function, and as many program counters on its stacks as it likes.
const maxWork = 64 << 20

var errWork = errors.New("the call frame instructions of all stacks are too long")

// Work is what making rows may still cost. Safe for concurrent use; nil has no end.
type Work struct{ done atomic.Int64 }

// spent takes n bytes of instructions into account.
func (w *Work) spent(n int) {
	if w != nil {
		w.done.Add(int64(n))
	}
}

func (w *Work) over() bool { return w != nil && w.done.Load() > maxWork }
