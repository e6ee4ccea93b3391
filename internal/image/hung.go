package image

import (
	"maps"
	"time"
)

// hung remembers what took too long, by device or by key: one dead server
// costs one wait and not one for each of its files, and a file that takes too
// long to read does not cost that for each thread that runs it.
type hung map[any]hungAt

type hungAt struct {
	since, until time.Time
	err          error
}

const (
	hungFor = 10 * time.Second // it is left alone then
	maxHung = 256              // a machine with more has forgotten some

	// lateOpens is how many files of a device that has answered may be late, one
	// after the other without an answer between them, until the device is left
	// alone: a busy disk is late now and then. One that never answered is left
	// alone at once.
	lateOpens = 2
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
	if opened {
		c.NoteAnswer(k.Key)
	}
	if !IsTimeout(err) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := any(k)
	if dev := k.device(); !opened && dev != (device{}) && c.late(dev) { // a device that is not known stands for none
		id = dev
	}
	if c.hung == nil || len(c.hung) >= maxHung {
		c.hung = hung{}
	}
	now := time.Now()
	c.hung[id] = hungAt{now, now.Add(hungFor), err}
	return true
}

// late counts an open of a device that was late, and says whether to leave the
// device alone. With mu held.
func (c *Cache) late(dev device) bool {
	n, answered := c.answers[dev]
	if answered {
		c.answers[dev] = n + 1
	}
	return !answered || n+1 >= lateOpens
}

// NoteAnswer remembers that a file of k's device was opened in time.
func (c *Cache) NoteAnswer(k Key) {
	if k.device() == (device{}) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil || len(c.answers) >= maxHung {
		c.answers = map[device]int{}
	}
	c.answers[k.device()] = 0
	delete(c.hung, k.device())
}

// Forgive has what hung since then be asked once more before its time. A device
// that is late again is left alone at once.
func (c *Cache) Forgive(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.hung, func(_ any, h hungAt) bool { return !h.since.Before(since) })
}
