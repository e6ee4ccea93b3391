package snapshot

import (
	"cmp"
	"errors"

	"stackshot/internal/bpf"
	"stackshot/internal/clock"
	"stackshot/internal/resident"
	"stackshot/internal/trapmemory"
)

// toldResident is what this session has told a resident that has armed the machine: which stop a
// panic must end, and where this capture's memory lies in a dump. The coordinator owns it.
type toldResident struct {
	path  string          // of the file; "": resident.Path
	is    resident.Holder // that was told; zero: none
	stops *bpf.LiveStops
	told  *bpf.Trap // whose memory place describes
	place *trapmemory.Place
	why   error // of the last stop: why a panic would not have ended it
}

// tellResident makes the stop that comes known to whoever has armed the machine. If nobody has, it
// costs the attempt to open a file. A failure fails no capture.
func (s *Session) tellResident(l *bpf.Trap) {
	r := &s.resident
	r.why = r.tell(s, l)
}

func (r *toldResident) tell(s *Session, l *bpf.Trap) error {
	now, err := resident.Running(cmp.Or(r.path, resident.Path))
	if err != nil || now == nil {
		return errors.Join(err, r.leave())
	}
	if *now != r.is {
		if err := r.leave(); err != nil {
			return err
		}
		if r.stops, err = bpf.OpenLiveStops(now.Live); err != nil {
			return err
		}
		r.is = *now
	}
	err = r.stops.Enter(l)
	if r.told == l && r.place != nil {
		return err
	}
	return errors.Join(err, r.putPlace(s, l))
}

// putPlace says in memory that a dump has where the trap's memory lies. The old place goes
// when the new one is there.
func (r *toldResident) putPlace(s *Session, l *bpf.Trap) error {
	boot, err := s.machine.BootID()
	if err != nil {
		return err
	}
	place, err := trapmemory.NewPlace(l, s.team.Objects.MappedSlots(), boot, clock.Now().Boottime)
	if err != nil {
		return err
	}
	old := r.place
	r.place, r.told = place, l
	if old == nil {
		return nil
	}
	return old.Close()
}

// leave takes back what was told.
func (r *toldResident) leave() (err error) {
	if r.stops != nil {
		err = errors.Join(r.stops.Leave(), r.stops.Close())
	}
	if r.place != nil {
		err = errors.Join(err, r.place.Close())
	}
	*r = toldResident{path: r.path}
	return err
}
