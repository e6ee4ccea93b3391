package testvm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
)

// console keeps lines of text: what a guest's console printed, or its program.
type console struct {
	part []byte // of a line that has not ended; only Write and end touch it

	mu    sync.Mutex
	lines []string
	seen  int           // next begins here; only next moves it
	more  chan struct{} // closed at the next line; made by next
}

// maxLine bounds a line; a longer one becomes several.
const maxLine = 4096

// read takes lines until r ends.
func (c *console) read(r io.Reader) {
	io.Copy(c, r) // QEMU's end is an error of the socket, too
	c.end()
}

// Write takes text in pieces of any length; it never fails.
func (c *console) Write(b []byte) (int, error) {
	for _, piece := range bytes.SplitAfter(b, []byte{'\n'}) {
		c.part = append(c.part, piece...)
		if bytes.HasSuffix(piece, []byte{'\n'}) || len(c.part) >= maxLine {
			c.end()
		}
	}
	return len(b), nil
}

// end ends a line that has no line feed.
func (c *console) end() {
	if len(c.part) > 0 {
		c.add(strings.TrimRight(string(c.part), "\r\n"))
		c.part = c.part[:0]
	}
}

func (c *console) add(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
	if c.more != nil {
		close(c.more)
		c.more = nil
	}
}

// next finds the next line that matches, or gives what is closed when there are
// more lines to look at.
func (c *console) next(re *regexp.Regexp) (string, <-chan struct{}, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.seen < len(c.lines) {
		c.seen++
		if line := c.lines[c.seen-1]; re.MatchString(line) {
			return line, nil, true
		}
	}
	if c.more == nil {
		c.more = make(chan struct{})
	}
	return "", c.more, false
}

func (c *console) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.lines...)
}

// last is the last line that says something.
func (c *console) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.lines) - 1; i >= 0; i-- {
		if s := strings.TrimSpace(c.lines[i]); s != "" {
			return s
		}
	}
	return ""
}

// await waits for the next line that matches. It begins where the last await ended.
// done is closed when no more lines come; whose says whose lines they are.
func (c *console) await(ctx context.Context, re *regexp.Regexp, done <-chan struct{}, whose string) (string, error) {
	for {
		line, more, ok := c.next(re)
		if ok {
			return line, nil
		}
		select {
		case <-more:
		case <-done:
			if line, _, ok := c.next(re); ok {
				return line, nil
			}
			return "", fmt.Errorf("%s ended without a line %q; last: %q", whose, re, c.last())
		case <-ctx.Done():
			return "", fmt.Errorf("%s: no line %q: %w; last: %q", whose, re, ctx.Err(), c.last())
		}
	}
}
