package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"stackshot/internal/engine"
	"stackshot/internal/testneed"
)

// pool has the sessions that tests of tier live have left open for the next test with the same
// options, since opening one takes most of a second. The one used last is last.
var pool []*pooled

type pooled struct {
	options string
	session *Session
	users   int // tests that have it
}

// mostPooled bounds the threads and the memory that lie about.
const mostPooled = 4

// session gives one that is whole, and may have captured before. It waits for captures of other test
// processes. Who asserts how a session opens and closes, what a first capture does or what is left
// over, who changes one, and who has tier lab, gets one of its own: [ownSession].
func session(tb testing.TB, o Options) *Session {
	tb.Helper()
	if o.Buffer != 0 || testneed.InLab(tb) { // a buffer grows, and stays grown
		return ownSession(tb, o)
	}
	return pooledSession(tb, o, engine.Hooks{}, "")
}

// withUserSide is a session in whose files chains and bytes of user stacks stay as they were taken.
func withUserSide(tb testing.TB, o Options) *Session {
	tb.Helper()
	return pooledSession(tb, o, engine.Hooks{KeepUserSide: true}, "user side")
}

// pooledSession has hooks that another test's session of the same name has, too.
func pooledSession(tb testing.TB, o Options, h engine.Hooks, hooks string) *Session {
	tb.Helper()
	needEngine(tb, o, h)
	o = patient(tb, o)
	p := &pooled{options: fmt.Sprintf("%+v %s", o, hooks)}
	if i := slices.IndexFunc(pool, func(q *pooled) bool { return q.options == p.options }); i >= 0 {
		p = pool[i]
		pool = slices.Delete(pool, i, i+1)
	} else {
		if i := slices.IndexFunc(pool, func(q *pooled) bool { return q.users == 0 }); i >= 0 && len(pool) >= mostPooled {
			closePooled(tb, pool[i])
		}
		var err error
		if p.session, err = open(o, h); err != nil {
			tb.Fatalf("open %+v: %v", o, err)
		}
	}
	pool = append(pool, p)
	p.users++
	tb.Cleanup(func() {
		if p.users--; tb.Failed() && p.users == 0 {
			closePooled(tb, p)
		}
	})
	return p.session
}

func closePooled(tb testing.TB, p *pooled) {
	tb.Helper()
	pool = slices.DeleteFunc(pool, func(q *pooled) bool { return p == q })
	if err := p.session.Close(); err != nil {
		tb.Error(err)
	}
}

// closePool is for the end of all tests.
func closePool() (err error) {
	for _, p := range pool {
		err = errors.Join(err, p.session.Close())
	}
	pool = nil
	return err
}
