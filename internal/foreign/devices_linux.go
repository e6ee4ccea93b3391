package foreign

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"stackshot/internal/mounts"
	"stackshot/internal/procfs"
)

const (
	hungFor = 10 * time.Second // how long no file is read on a device that was late

	// lateReads is how many files in a row may be late on a device that has answered
	// before; then the device is left alone. A busy disk is late now and then. A
	// device that has never answered is left alone after one late file, and so is
	// any device on which a reader still hangs.
	lateReads = 2

	// doubt is how long other readers wait after one was given up. A reader that was
	// only late, and can be killed, comes loose within this time.
	doubt = 300 * time.Millisecond
)

// HungError is the error of files on a device that does not answer.
type HungError struct {
	On    string // the file system, for people
	Since time.Time
	Other int // pid of a reader process of another run that hangs there; 0: a reader of ours hung
}

func (e *HungError) Error() string {
	who := ""
	if e.Other != 0 {
		who = fmt.Sprintf(", reader process %d of an earlier run hangs there", e.Other)
	}
	return fmt.Sprintf("its file system does not answer: %s%s, since %v", e.On, who, time.Since(e.Since).Round(time.Second))
}

// Unwrap makes errors.Is(err, procfs.ErrTimeout) hold.
func (e *HungError) Unwrap() error { return procfs.ErrTimeout }

// devices remembers how each device answers, and decides which files may be read now.
type devices struct {
	helpers int   // constant
	slots   slots // constant

	mu      sync.Mutex
	room    sync.Cond // of mu: a file was read, or given up
	known   map[mounts.Device]*device
	running int // files being read, without those given up
	hanging int // readers that were given up and have not come loose
	closed  bool
}

// device is what is known of one device. The devices' mu guards it.
type device struct {
	where
	proved bool      // it has answered, and lateReads files in a row were not late since
	inside int       // files being read
	hung   int       // readers of ours that hang there
	late   int       // late files since it last answered
	since  time.Time // when it began to be late
	asked  time.Time // when the last reader that hangs there was given up
	until  time.Time // no file is read there before
}

// where is a device that lies on the path to a file.
type where struct {
	dev  mounts.Device
	name string // for people
	kind string // of a file system that may hang (mounts.Mount.Kind); "": of another kind
	seen bool   // a mountinfo lists it
}

// risky reports whether a reader may hang there, as far as mountinfo tells.
func (w *where) risky() bool { return w.kind != "" || !w.seen }

func newDevices(helpers int) *devices {
	d := &devices{helpers: helpers, slots: findSlots(), known: map[mounts.Device]*device{}}
	d.room.L = &d.mu
	return d
}

// visit is one file being read. The devices' mu guards it.
type visit struct {
	of    *devices
	at    []*device // on the path to the file; once given up: the one that is blamed
	late  bool      // the caller gave it up
	ended bool      // the reader is done with the file
	mark  *mark     // how other runs learn that the reader hangs; nil: they need not
}

// enter waits until there is room to read a file on every device of its way, and begins
// a visit. On a device that has not answered yet, or may hang, there is room for one
// file at a time.
func (d *devices) enter(way []where) (*visit, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		at, free, err := d.look(way)
		switch {
		case d.closed:
			return nil, procfs.ErrClosed
		case err != nil:
			return nil, err
		case free && d.running < d.helpers:
			d.running++
			v := &visit{of: d}
			v.occupy(at)
			return v, nil
		}
		d.room.Wait() // ends: each file being read ends or is given up
	}
}

// look finds the devices of a way and says whether there is room on all of them. An
// error says why no file is read there now. Called with mu held.
func (d *devices) look(way []where) (at []*device, free bool, err error) {
	free = true
	for _, w := range way {
		dev := d.known[w.dev]
		if dev == nil || dev.hung == 0 && dev.inside == 0 && dev.name != w.name {
			dev = &device{where: w} // new, or another file system has its number by now
			d.known[w.dev] = dev
		}
		if err := d.refuse(dev); err != nil {
			return nil, false, err
		}
		most := max(d.helpers-1, 1)
		if dev.risky() || !dev.proved {
			most = 1
		}
		free = free && dev.inside < most && dev.hung == 0
		at = append(at, dev)
	}
	return at, free, nil
}

// refuse says why no file is read on a device now; nil: files may be read. A reader of
// another run may hang on a disk because of one file alone. So one reader of ours tries
// that disk too, unless maxStuck readers hang already.
func (d *devices) refuse(dev *device) error {
	now := time.Now()
	if dev.hung > 0 && now.After(dev.asked.Add(doubt)) || now.Before(dev.until) {
		return &HungError{On: dev.name, Since: dev.since}
	}
	if dev.proved && !dev.risky() {
		return nil
	}
	stuck := d.slots.taken()
	n := max(len(stuck), d.hanging)
	for _, s := range stuck {
		if s.dev == dev.dev && dev.dev != (mounts.Device{}) && (n >= maxStuck || dev.risky()) {
			return &HungError{On: dev.name, Since: s.since, Other: s.pid}
		}
	}
	if n >= maxStuck && dev.risky() {
		return fmt.Errorf("%w: %d readers on this machine; not tried: %s", procfs.ErrExhausted, n, dev.name)
	}
	return nil
}

// further extends a visit to the devices that a symbolic link leads to. It does not wait.
func (v *visit) further(way []where) error {
	d := v.of
	d.mu.Lock()
	defer d.mu.Unlock()
	var fresh []where
	for _, w := range way {
		if !v.has(w.dev) {
			fresh = append(fresh, w)
		}
	}
	at, free, err := d.look(fresh)
	switch {
	case err != nil:
		return err
	case !free:
		return fmt.Errorf("%w: another reader finds out whether %s answers", procfs.ErrExhausted, fresh[len(fresh)-1].name)
	case v.late:
		return procfs.ErrTimeout
	}
	v.occupy(at)
	return nil
}

func (v *visit) has(dev mounts.Device) bool {
	return slices.ContainsFunc(v.at, func(at *device) bool { return at.dev == dev })
}

// occupy counts the visit on devices. Called with mu held.
func (v *visit) occupy(at []*device) {
	for _, dev := range at {
		dev.inside++
	}
	v.at = append(v.at, at...)
}

// leave takes the visit off the counts of its devices. Called with mu held.
func (v *visit) leave() {
	v.of.running--
	for _, dev := range v.at {
		dev.inside--
	}
}

// answered notes that the file was opened in time.
func (v *visit) answered() {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	if v.late {
		return
	}
	for _, dev := range v.at {
		dev.proved, dev.late, dev.until = true, 0, time.Time{}
	}
}

// blamed is the device on which a reader most likely hangs: the first that may hang;
// else the last that has not answered yet; else the one that the file is on.
func (v *visit) blamed() *device {
	last := v.at[len(v.at)-1]
	for _, dev := range v.at {
		if dev.risky() {
			return dev
		}
		if !dev.proved {
			last = dev
		}
	}
	return last
}

// giveUp is called by a caller whose time is over. own: the reader was in a callback of
// ours, so no device is to blame. m makes the mark by which other runs learn that the
// reader hangs.
func (v *visit) giveUp(own bool, m func() *mark) {
	d := v.of
	d.mu.Lock()
	defer d.mu.Unlock()
	if !v.ended {
		v.late = true
		v.leave()
		d.hanging++
	}
	d.room.Broadcast()
	if own {
		return
	}
	dev := v.blamed()
	dev.late++
	now := time.Now()
	if !dev.proved || dev.late >= lateReads {
		dev.proved, dev.until = false, now.Add(hungFor)
	}
	if dev.hung == 0 {
		dev.since = now
	}
	if !v.ended {
		dev.hung++
		dev.asked = now
		time.AfterFunc(doubt+time.Millisecond, d.wake)
		v.at, v.mark = []*device{dev}, m()
		v.mark.set(dev.dev)
	} else {
		v.at = nil
	}
}

// end is called by the reader, when it has left the file system. A reader process that
// was killed has left it when it is dead.
func (v *visit) end() {
	d := v.of
	d.mu.Lock()
	defer d.mu.Unlock()
	v.ended = true
	defer d.room.Broadcast()
	if !v.late {
		v.leave()
		return
	}
	d.hanging--
	if v.mark != nil {
		v.at[0].hung--
		v.mark.clear()
	}
}

// forgive lets files be read again on devices that were late since then, but not where a
// reader still hangs.
func (d *devices) forgive(since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dev := range d.known {
		if !dev.since.Before(since) {
			dev.until = time.Time{}
		}
	}
}

func (d *devices) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room.Broadcast()
}

func (d *devices) stuck() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hanging
}

func (d *devices) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.room.Broadcast()
}
