package kcdata

import "iter"

// Chain writes items into a list of chunks that grows on demand. The chunks come from the
// caller and go back to the caller, and after NewChain nothing here allocates. So a chain
// can be written while the machine is stopped. The stream is the concatenation of the
// chunks. An item written by an ItemWriter method lies in one chunk; raw bytes (Room,
// Advance) may be split anywhere.
//
// A Chain is not safe for concurrent use. It belongs to one worker, which records tasks
// into it, and passes to collation when that worker is done.
type Chain struct {
	items
	chunks  [][]byte // each: length used, capacity usable
	done    int64    // bytes in all chunks but the last
	grow    func(min int) ([]byte, error)
	release func(tail []byte)
	fail    growError // why the last grow failed; returned by address
}

// growError is ErrNoSpace with the allocator's reason. Each chain keeps one, because to make
// one would allocate.
type growError struct{ cause error }

func (e *growError) Error() string {
	if e.cause == nil {
		return ErrNoSpace.Error()
	}
	return ErrNoSpace.Error() + ": " + e.cause.Error()
}

func (e *growError) Is(target error) bool { return target == ErrNoSpace }

func (e *growError) Unwrap() error { return e.cause }

// NewChain makes a chain of at most maxChunks chunks. grow returns a chunk of at least min
// bytes, with any content. release takes back the tail of a chunk when the chain writes no
// more to it.
func NewChain(maxChunks int, grow func(min int) ([]byte, error), release func(tail []byte)) *Chain {
	c := &Chain{chunks: make([][]byte, 0, maxChunks), grow: grow, release: release}
	c.space = c
	return c
}

// reserve adds a chunk before it releases the tail of the last one. So if no chunk is to be
// had, the last chunk keeps its tail, and smaller items still fit into it.
func (c *Chain) reserve(n int) ([]byte, error) {
	if n > c.free() {
		if err := c.add(n); err != nil {
			return nil, err
		}
	}
	last := &c.chunks[len(c.chunks)-1]
	used := len(*last)
	*last = (*last)[:used+n]
	return (*last)[used : used+n : used+n], nil
}

// free is the room in the last chunk.
func (c *Chain) free() int {
	if len(c.chunks) == 0 {
		return 0
	}
	last := c.chunks[len(c.chunks)-1]
	return cap(last) - len(last)
}

func (c *Chain) add(min int) error {
	c.fail.cause = nil
	if len(c.chunks) == cap(c.chunks) {
		return &c.fail
	}
	b, err := c.grow(min)
	if err == nil && len(b) < min {
		c.release(b)
	}
	if err != nil || len(b) < min {
		c.fail.cause = err
		return &c.fail
	}
	c.Close()
	if n := len(c.chunks); n > 0 {
		c.done += int64(len(c.chunks[n-1]))
	}
	c.chunks = append(c.chunks, b[:0:len(b)])
	return nil
}

// Room is the unused rest of the last chunk, for raw bytes; Advance must then be told how
// many were written. If the last chunk is full, Room adds one. It is nil if there is no
// more room.
func (c *Chain) Room() []byte {
	if c.free() == 0 && c.add(headerSize) != nil {
		return nil
	}
	last := c.chunks[len(c.chunks)-1]
	return last[len(last):cap(last)]
}

// Advance makes the first n bytes of Room part of the stream. It panics if Room is shorter.
func (c *Chain) Advance(n int) {
	if n == 0 {
		return
	}
	last := &c.chunks[len(c.chunks)-1]
	*last = (*last)[:len(*last)+n]
}

// Len is the length of the stream in bytes.
func (c *Chain) Len() int64 {
	if len(c.chunks) == 0 {
		return 0
	}
	return c.done + int64(len(c.chunks[len(c.chunks)-1]))
}

// Close gives the unused tail of the last chunk to release. If more is written to the chain
// afterwards, it takes a new chunk.
func (c *Chain) Close() {
	if c.free() == 0 {
		return
	}
	last := &c.chunks[len(c.chunks)-1]
	n := len(*last)
	tail := (*last)[n:cap(*last)]
	*last = (*last)[:n:n]
	c.release(tail)
}

// Reset forgets all chunks without releasing them. The caller resets the memory that they
// came from as a whole.
func (c *Chain) Reset() {
	clear(c.chunks)
	c.chunks = c.chunks[:0]
	c.done = 0
}

// Mark is a position in the stream.
type Mark struct{ chunk, off int }

// Mark is the position of the next byte.
func (c *Chain) Mark() Mark {
	if len(c.chunks) == 0 {
		return Mark{}
	}
	n := len(c.chunks) - 1
	return Mark{n, len(c.chunks[n])}
}

// Rewind drops everything that was written since m, for a group of items that cannot be
// completed. It gives the chunks that were begun since m to release as a whole.
func (c *Chain) Rewind(m Mark) {
	for len(c.chunks) > m.chunk+1 {
		last := c.chunks[len(c.chunks)-1]
		c.chunks[len(c.chunks)-1] = nil
		c.chunks = c.chunks[:len(c.chunks)-1]
		if cap(last) > 0 {
			c.release(last[:cap(last)])
		}
		c.done -= int64(len(c.chunks[len(c.chunks)-1]))
	}
	if m.chunk < len(c.chunks) {
		c.chunks[m.chunk] = c.chunks[m.chunk][:m.off]
	}
}

// Span gives the bytes of the stream from one mark to another, in order, chunk by chunk.
func (c *Chain) Span(from, to Mark) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := from.chunk; i <= to.chunk && i < len(c.chunks); i++ {
			b := c.chunks[i]
			if i == to.chunk {
				b = b[:to.off]
			}
			if i == from.chunk {
				b = b[from.off:]
			}
			if len(b) > 0 && !yield(b) {
				return
			}
		}
	}
}
