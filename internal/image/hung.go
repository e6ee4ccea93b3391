package image

import "time"

// hung remembers what took too long, by device or by key: one dead server
// costs one wait and not one for each of its files, and a file that takes too
// long to read does not cost that for each thread that runs it.
type hung map[any]hungAt

type hungAt struct {
	until time.Time
	err   error
}

const (
	hungFor = 10 * time.Second // it is left alone then
	maxHung = 256              // a machine with more has forgotten some
)

// device is a device's numbers, major and minor.
type device [2]uint32

func (k Key) device() device { return device{k.Major, k.Minor} }

// Hanging gives the error of a file that is left alone for now, or whose device
// is; nil: it may be asked for what.
func (c *Cache) Hanging(k Key, what string) error { return c.hanging(key{Key: k, what: what}) }

func (c *Cache) hanging(k key) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range []any{k.device(), k} {
		if h, ok := c.hung[id]; ok && time.Now().Before(h.until) {
			return h.err
		}
	}
	return nil
}

// NoteHung says whether err is that of a file that hangs, and remembers that.
// opened: the device answered, but what was asked of the file took too long.
func (c *Cache) NoteHung(k Key, what string, opened bool, err error) bool {
	return c.noteHung(key{Key: k, what: what}, opened, err)
}

func (c *Cache) noteHung(k key, opened bool, err error) bool {
	if !IsTimeout(err) {
		return false
	}
	id := any(k.device())
	if opened || id == (device{}) { // a device that is not known stands for none
		id = k
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hung == nil || len(c.hung) >= maxHung {
		c.hung = hung{}
	}
	c.hung[id] = hungAt{time.Now().Add(hungFor), err}
	return true
}
