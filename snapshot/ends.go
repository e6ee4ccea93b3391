package snapshot

import (
	"errors"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/clock"
	"stackshot/internal/ends"
	"stackshot/kcdata"
)

// openEnds loads what looks, after the release, for the other ends of files at which threads
// wait. It is done here since it takes the kernel some time, which a stop must not wait for and
// which a release must not wait for either: the threads go on meanwhile. Without it a capture is
// made all the same, and the file says why.
func (s *Session) openEnds(open func(level uint32) (ends.Pass, error)) {
	switch {
	case s.team == nil || s.options.Wait != WaitOn:
		return
	case s.thrift.files != nil:
		s.warn(endsUnavailable, "nobody looks for the other ends of files at which threads wait: "+s.thrift.files.Error())
		return
	}
	s.ends = &ends.Looker{Proc: s.proc, Budget: ends.Budget}
	pass, err := open(s.team.Objects.Control.NsLevel)
	if err != nil {
		s.warn(endsUnavailable, "only /proc tells who has the other ends of files at which threads wait: "+err.Error())
		return
	}
	s.ends.Pass = pass
}

const endsUnavailable = "ends_unavailable"

func openEndPass(level uint32) (ends.Pass, error) {
	p, err := bpf.OpenEndPass(bpf.EndPassOptions{Level: level})
	if err != nil {
		return nil, err // not p: a nil *EndPass is no nil Pass
	}
	return p, nil
}

// lookForEnds fills c.Ends. It runs right after the release, since what it finds counts only
// while the threads still wait.
func (s *Session) lookForEnds(c *capture.Raw) {
	if s.ends != nil && c.FileSources != 0 {
		s.look(c, ends.Wanted(c))
	}
}

func (s *Session) look(c *capture.Raw, w *ends.Wants) {
	began := clock.Nanotime()
	found := s.ends.Look(w)
	c.Ends = found.Ends
	k := &c.Capture
	if released := int64(k.StopNs + k.ArrivalNs + k.WindowNs + k.ReleaseNs); k.StopNs != 0 && released < began {
		c.Ends.Taken.DelayNs = uint64(began - released)
	}
	if err := found.PassErr; err != nil && !errors.Is(err, ends.ErrNoPass) { // of that Open has told
		c.Warn(endsUnavailable, "the pass over all open files was not made: "+err.Error())
	}
	if t := &c.Ends.Taken; t.Flags&kcdata.FilesHung != 0 {
		c.Warn("ends_hung", "a read of /proc or /sys, or the pass over all open files, did not end in "+time.Duration(t.TotalNs).Round(time.Millisecond).String()+
			": other ends of files may be missing")
	}
}
