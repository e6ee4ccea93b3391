package image

// Get gives what Update keeps of a file; nil for nothing. It is shared: nobody may
// change it.
func (c *Cache) Get(k Key, what string) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key{Key: k, what: what}]
	if e == nil {
		return nil
	}
	c.recent.MoveToFront(e.at)
	return e.value
}

// Update keeps what merge makes of what is kept of a file (nil: nothing yet), for
// what is learnt of files bit by bit. A value that costs more than the cache's
// bound is not kept. Not for a what that Load is used with.
func (c *Cache) Update(k Key, what string, merge func(old Coster) Coster) {
	id := key{Key: k, what: what}
	c.mu.Lock()
	defer c.mu.Unlock()
	var old Coster
	if e := c.entries[id]; e != nil {
		old = e.value.(Coster)
		c.remove(e)
	}
	v := merge(old)
	e := &entry{key: id, value: v, keep: true, cost: max(v.Cost(), smallCost)}
	if c.entries[id] = e; !c.file(e) {
		delete(c.entries, id)
	}
}

// Drop forgets what Update keeps of a file.
func (c *Cache) Drop(k Key, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key{Key: k, what: what}]; e != nil {
		c.remove(e)
	}
}

// MaxCost is the cache's bound, bytes.
func (c *Cache) MaxCost() int64 { return c.max }
