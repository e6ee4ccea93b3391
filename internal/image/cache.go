package image

import (
	"bytes"
	"container/list"
	"errors"
	"io"
	"sync"

	"stackshot/internal/elfnote"
	"stackshot/internal/foreign"
	"stackshot/kcdata"
)

// DefaultMaxCost bounds a cache that is not told otherwise, bytes.
const DefaultMaxCost = 256 << 20

// Coster is a value that says how many bytes it takes to keep it. Other values, and
// errors, count as smallCost.
type Coster interface{ Cost() int64 }

const smallCost = 256

// Cache keeps what callbacks made of files, by file and by what they made. Safe
// to call concurrently; of several calls for the same only one loads.
type Cache struct {
	files *foreign.Files // constant
	max   int64          // constant

	mu      sync.Mutex
	entries map[key]*entry // by mu
	recent  *list.List     // by mu; of *entry that are ready, last used first
	cost    int64          // by mu; of those
	hung    hung           // by mu
}

// key is a file and what was made of it.
type key struct {
	Key
	stat foreign.Stat // by which a file without a build-id is known to be unchanged
	what string
}

// entry is one value or the error of its callback. Written by the call that
// made it, constant once ready is closed.
type entry struct {
	key   key
	ready chan struct{}
	value any
	err   error
	keep  bool // the file's own fault: asking again brings the same
	cost  int64
	at    *list.Element // by the cache's mu; nil: not in recent
}

// New makes a cache over files, which stay the caller's. maxCost is in bytes; 0:
// DefaultMaxCost.
func New(files *foreign.Files, maxCost int64) *Cache {
	if maxCost <= 0 {
		maxCost = DefaultMaxCost
	}
	return &Cache{files: files, max: maxCost, entries: map[key]*entry{}, recent: list.New()}
}

// Cost is what everything that is kept costs, bytes.
func (c *Cache) Cost() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cost
}

// Load gives what load makes of the file mapped at m in process p, made once per file
// and what ("build-id", "unwind"). All who ask share the value: nobody may change it.
// load runs under the limits of foreign.Files.LoadFrom.
//
// Errors: ErrNoFile; load's own, which are kept like values; those of package foreign
// and of reading, which are not kept.
func (c *Cache) Load(p Process, m *kcdata.Mapping, what string, load func(r io.ReaderAt, size int64) (any, error)) (any, error) {
	k := key{Key: KeyOf(m), what: what}
	if m.Flags&kcdata.MappingVDSO != 0 {
		return c.once(k, func(e *entry) { e.fromVDSO(m, load) })
	}
	if !MappedFile(m) {
		return nil, ErrNoFile
	}
	at := (&Mapped{p, *m}).Places() // a copy: a helper may outlive this call
	if k.Build == "" {
		if err := c.Hanging(k.Key, what); err != nil {
			return nil, err
		}
		var err error
		if at, k.stat, err = c.find(k, at); err != nil {
			return nil, err
		}
	}
	return c.once(k, func(e *entry) { c.fromFile(e, at, load) })
}

// find says which of the places holds the file, and what it is.
func (c *Cache) find(k key, at []Place) ([]Place, foreign.Stat, error) {
	err := error(ErrNoFile)
	for _, p := range at {
		st, why := c.files.Stat(p.Where)
		if why == nil {
			return []Place{p}, st, nil
		}
		err = worse(err, why)
		if c.NoteHung(k.Key, k.what, why) {
			break
		}
	}
	return nil, foreign.Stat{}, err
}

// once gives the value of k, made by fill if it is not there.
func (c *Cache) once(k key, fill func(*entry)) (any, error) {
	for {
		e, mine := c.claim(k)
		if mine {
			fill(e)
			c.settle(e) // before those who wait look again
			close(e.ready)
			return e.value, e.err
		}
		<-e.ready // ends: every load ends or is written off
		if e.keep || IsTimeout(e.err) {
			return e.value, e.err
		}
		// What failed there may be another process's fault: it ended.
	}
}

// claim gives the entry of k, and whether the caller has to fill it.
func (c *Cache) claim(k key) (e *entry, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[k]; e != nil {
		if e.at != nil {
			c.recent.MoveToFront(e.at)
		}
		return e, false
	}
	e = &entry{key: k, ready: make(chan struct{}), cost: smallCost}
	c.entries[k] = e
	return e, true
}

// settle keeps an entry that is worth it, and drops the longest unused ones.
func (c *Cache) settle(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := e.value.(Coster); ok && e.err == nil {
		e.cost = max(e.cost, v.Cost())
	}
	if !e.keep || !c.file(e) {
		delete(c.entries, e.key)
	}
}

// file puts an entry among the recent ones, if there is room for it; others go,
// the longest unused first. With mu held.
func (c *Cache) file(e *entry) bool {
	if e.cost > c.max {
		return false
	}
	e.at = c.recent.PushFront(e)
	c.cost += e.cost
	for c.cost > c.max {
		c.remove(c.recent.Back().Value.(*entry))
	}
	return true
}

// remove is called with mu held, for an entry that is in recent.
func (c *Cache) remove(e *entry) {
	c.recent.Remove(e.at)
	delete(c.entries, e.key)
	c.cost -= e.cost
}

// loaded tells the callback's own error from those before it and of reading.
type loaded struct {
	value any
	err   error
}

// watched remembers the first read that failed: if a callback could not read the file,
// its result says nothing about the file.
type watched struct {
	in  io.ReaderAt
	err error
}

func (w *watched) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.in.ReadAt(p, off)
	if w.err == nil && err != nil && !isFilesFault(err) {
		w.err = err
	}
	return n, err
}

// fromFile fills an entry from the first place that holds the file.
func (c *Cache) fromFile(e *entry, at []Place, load func(io.ReaderAt, int64) (any, error)) {
	if e.err = c.Hanging(e.key.Key, e.key.what); e.err != nil {
		return
	}
	e.err = ErrNoFile
	build := e.key.Build // a helper may outlive this call
	for _, p := range at {
		v, err := c.files.LoadFrom(p.Where, func(r io.ReaderAt, size int64) (any, error) {
			if p.Alive != nil {
				if err := p.Alive(); err != nil {
					return nil, err
				}
			}
			if err := isBuild(build, r); err != nil {
				return nil, err
			}
			w := &watched{in: r}
			value, err := load(w, size)
			return loaded{value, err}, w.err
		})
		if err == nil {
			got := v.(loaded)
			e.value, e.err, e.keep = got.value, got.err, true
			return
		}
		e.err = worse(e.err, err)
		if c.NoteHung(e.key.Key, e.key.what, err) {
			return
		}
	}
}

// fromVDSO fills an entry from this machine's own vDSO, of which no file is
// needed. A mapping of another machine's fails unless the build-ids agree.
func (e *entry) fromVDSO(m *kcdata.Mapping, load func(io.ReaderAt, int64) (any, error)) {
	b, err := VDSO(m)
	if err != nil {
		e.err = err
		return
	}
	e.value, e.err = load(bytes.NewReader(b), int64(len(b)))
	e.keep = true
}

// isBuild says why a file's build-id is not the wanted one; "" wants none.
func isBuild(want string, r io.ReaderAt) error {
	if want == "" {
		return nil
	}
	id, err := elfnote.BuildID(r)
	if err != nil {
		return err
	}
	return SameBuild(want, id)
}

// worse keeps the error that says more. "It is not in this place" says less than why a
// file that is there cannot be read.
func worse(a, b error) error {
	if errors.Is(a, ErrNoFile) || isAbsent(a) {
		return b
	}
	return a
}
