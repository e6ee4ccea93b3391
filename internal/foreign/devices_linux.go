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
	hungFor = 10 * time.Second // a device is left alone after it was late

	// lateReads is how many files of a device that has answered may be late, one
	// after the other without an answer between them, until the device is left
	// alone: a busy disk is late now and then. One that never answered is left
	// alone at once, and any on which a reader still hangs.
	lateReads = 2

	// doubt is how long after a reader was given up others wait until it is known
	// whether it comes loose, as one does that was merely late and can be killed.
	doubt = 300 * time.Millisecond
)

// HungError answers for files on a device that does not answer.
type HungError struct {
	On    string // the file system, for people
	Since time.Time
	Other int // pid of a reader process of another run that hangs there; 0: one of ours did
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

// devices remembers how each device answers, and lets files in accordingly.
type devices struct {
	helpers int   // constant
	slots   slots // constant

	mu      sync.Mutex
	room    sync.Cond // of mu: somebody left, or was given up
	known   map[mounts.Device]*device
	running int // files being read, those given up left out
	hanging int // readers that were given up and have not come loose
	closed  bool
}

// device is one, by the devices' mu.
type device struct {
	where
	proved bool // it has answered, and nothing speaks against it since
	inside int  // files being read
	hung   int  // readers of ours that hang there
	late   int  // files since it last answered
	since  time.Time
	asked  time.Time // when the last of those that hang was given up
	until  time.Time // it is left alone
}

// where is a device that a file's way leads to.
type where struct {
	dev  mounts.Device
	name string // for people
	kind string // of a file system that may hang; "": not of such a kind
	seen bool   // some mountinfo has it
}

// risky says that whoever goes there may hang, for all that is known beforehand.
func (w *where) risky() bool { return w.kind != "" || !w.seen }

func newDevices(helpers int) *devices {
	d := &devices{helpers: helpers, slots: findSlots(), known: map[mounts.Device]*device{}}
	d.room.L = &d.mu
	return d
}

// visit is one file being read. By the devices' mu.
type visit struct {
	of    *devices
	at    []*device
	late  bool // given up
	ended bool
	mark  *mark
}

// enter lets a file in that lies at the end of a way, when there is room: one file at
// a time on a device that has not answered yet, or may hang.
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
			for _, dev := range at {
				dev.inside++
			}
			d.running++
			return &visit{of: d, at: at}, nil
		}
		d.room.Wait() // ends: every file under way ends or is given up
	}
}

// look says whether there is room on all of a way, or why there never is. With mu
// held.
func (d *devices) look(way []where) (at []*device, free bool, err error) {
	free = true
	for _, w := range way {
		dev := d.known[w.dev]
		if dev == nil || dev.hung == 0 && dev.inside == 0 && dev.name != w.name {
			dev = &device{where: w} // or its number is another's by now
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

// refuse says why nothing is read on a device now. That a reader of another run hangs
// on a device which should answer, a disk, may be for one file's sake: one reader of
// ours finds out, as long as there may be one more that hangs.
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

// further lets a visit go on to where a symbolic link leads.
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
	for _, dev := range at {
		dev.inside++
	}
	v.at = append(v.at, at...)
	return nil
}

func (v *visit) has(dev mounts.Device) bool {
	return slices.ContainsFunc(v.at, func(at *device) bool { return at.dev == dev })
}

// answered: the file was opened in time.
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

// blamed is where a reader is most likely to hang: where it may, then where nobody
// has been yet, then where the file is.
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

// giveUp ends a visit of which nothing was heard in time. own: the reader was with a
// callback of ours, and the device has nothing to do with it. By a mark other runs
// learn of it while the reader hangs.
func (v *visit) giveUp(own bool, m func() *mark) {
	d := v.of
	d.mu.Lock()
	defer d.mu.Unlock()
	if !v.ended {
		v.late = true
		d.running--
		d.hanging++
		for _, dev := range v.at {
			dev.inside--
		}
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

// end is said by the reader, when it is out of the file system and, if it is a
// process that was killed, dead.
func (v *visit) end() {
	d := v.of
	d.mu.Lock()
	defer d.mu.Unlock()
	v.ended = true
	defer d.room.Broadcast()
	if !v.late {
		d.running--
		for _, dev := range v.at {
			dev.inside--
		}
		return
	}
	d.hanging--
	if v.mark != nil {
		v.at[0].hung--
		v.mark.clear()
	}
}

// forgive has devices that were late since then be asked once more before their time.
// Where a reader still hangs nobody goes.
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
