package image

import (
	"errors"
	"maps"
	"time"

	"stackshot/internal/procfs"
)

// hung remembers what took too long, by file and what was asked of it: a file that
// takes too long to read does not cost that for each thread that runs it. Package
// foreign remembers devices.
type hung map[hungKey]hungAt

type hungKey struct {
	Key
	what string
}

type hungAt struct {
	since, until time.Time
	err          error
}

const (
	hungFor = 10 * time.Second // it is left alone then
	maxHung = 256              // a machine with more has forgotten some
)

// Hanging gives the error of a file that is left alone for now; nil: it may be asked
// for what.
func (c *Cache) Hanging(k Key, what string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h, ok := c.hung[hungKey{k, what}]; ok && time.Now().Before(h.until) {
		return h.err
	}
	return nil
}

// NoteHung says whether err is that of a file that hangs, and remembers that.
func (c *Cache) NoteHung(k Key, what string, err error) bool {
	var late *procfs.TimeoutError
	if !errors.As(err, &late) { // a refusal may be of the way alone
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hung == nil || len(c.hung) >= maxHung {
		c.hung = hung{}
	}
	now := time.Now()
	c.hung[hungKey{k, what}] = hungAt{now, now.Add(hungFor), err}
	return true
}

// RetryLate has what hung since then be asked once more before its time. A device that
// is late again is left alone at once.
func (c *Cache) RetryLate(since time.Time) {
	c.files.RetryLate(since)
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.hung, func(_ hungKey, h hungAt) bool { return !h.since.Before(since) })
}
