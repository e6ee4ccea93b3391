package snapshot

import (
	"errors"
	"slices"
	"testing"
	"time"

	"stackshot/internal/bpf"
	"stackshot/internal/capture"
	"stackshot/internal/ends"
	"stackshot/internal/engine"
	"stackshot/internal/limits"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

func warned(s *Session) bool {
	return slices.ContainsFunc(s.warnings, func(w kcdata.Warning) bool { return w.Code == endsUnavailable })
}

// Where the pass cannot be loaded, /proc is used and every file says why; where little is left,
// nobody looks, and that is said; where no waits are recorded, there is nothing to look for.
func TestEndsUnavailable(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	s := hooked(t, Options{}, engine.Hooks{})
	s.warnings = nil
	s.openEnds(func(uint32) (ends.Pass, error) { return nil, errors.New("no type information") })
	if s.ends == nil || s.ends.Pass != nil || !warned(s) {
		t.Errorf("%+v, %q", s.ends, s.warnings)
	}
	few := hooked(t, Options{}, engine.Hooks{FewPids: &limits.Room{Free: int64(wholePids(len(s.plan.Stop))) - 1, Max: 99, By: "a bound"}})
	if few.ends != nil || !warned(few) {
		t.Errorf("few process ids: %+v, %q", few.ends, few.warnings)
	}
	for _, o := range []Options{{Wait: WaitOff}, {Engine: EngineProcfs}} {
		if s := session(t, o); s.ends != nil || warned(s) {
			t.Errorf("%+v: %+v, %q", o, s.ends, s.warnings)
		}
	}
}

// stuck is a pass that the kernel does not end.
type stuck struct{ end chan struct{} }

func (p stuck) Look([]bpf.WantedEnd, []bpf.WantedThread, time.Time) (*bpf.FoundEnds, error) {
	<-p.end
	return nil, errors.New("too late")
}

func (p stuck) Close() error { return nil }

// A pass that hangs costs a capture its budget and no more, or this test would not end; and the
// file has a warning.
func TestStuckPass(t *testing.T) {
	testneed.Live(t)
	p := stuck{make(chan struct{})}
	defer close(p.end)
	s := &Session{ends: &ends.Looker{Pass: p, Budget: 200 * time.Millisecond}}
	c := &capture.Raw{FileSources: kcdata.FilesHasTable}
	w := ends.Wanted(c)
	w.Ends = append(w.Ends, bpf.WantedEnd{Object: 1})
	s.look(c, w)
	if c.Ends == nil || c.Ends.Taken.Flags&kcdata.FilesHung == 0 {
		t.Errorf("%+v", c.Ends)
	}
	for _, code := range []string{endsUnavailable, "ends_hung"} {
		if !slices.ContainsFunc(c.Warnings, func(w kcdata.Warning) bool { return w.Code == code }) {
			t.Errorf("no %s in %q", code, c.Warnings)
		}
	}
	c = &capture.Raw{Engine: capture.Procfs}
	if s.lookForEnds(c); c.Ends != nil {
		t.Error("engine procfs records no open files, and somebody looked for their ends")
	}
}
