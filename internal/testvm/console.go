package testvm

import (
	"bufio"
	"io"
	"regexp"
	"strings"
	"sync"
)

// console keeps what a guest's console printed.
type console struct {
	mu    sync.Mutex
	lines []string
	seen  int           // next begins here; only next moves it
	more  chan struct{} // closed at the next line; made by next
}

// maxLine bounds a line; a longer one becomes several.
const maxLine = 4096

// read takes lines until r ends.
func (c *console) read(r io.Reader) {
	b := bufio.NewReaderSize(r, maxLine)
	for {
		// A full buffer is a line, too: the error is then bufio.ErrBufferFull.
		line, err := b.ReadSlice('\n')
		if len(line) > 0 {
			c.add(strings.TrimRight(string(line), "\r\n"))
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
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
