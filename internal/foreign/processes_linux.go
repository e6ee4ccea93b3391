package foreign

import (
	"slices"
	"sync"
	"time"
)

// processes starts reader processes and keeps the idle ones.
type processes struct {
	command []string // constant
	slots   slots    // constant

	mu      sync.Mutex
	idle    []*process      // by mu
	waiting []chan *process // by mu; of those that wait for a process to become idle
	live    int             // by mu; processes that were begun and have not been left
	closed  bool            // by mu
}

// patience is how long a file waits for a process that has another one: to start a process takes
// as long as to read a dozen files that the page cache has.
const patience = 100 * time.Millisecond

// take gives a process for one file, and sets its deadline for all requests of that file
// together. It gives nil without a command, or with an error.
func (ps *processes) take(limit time.Duration) (p *process, err error) {
	if len(ps.command) == 0 {
		return nil, nil
	}
	if p = ps.reuse(); p == nil {
		if p, err = startProcess(ps.command, ps.slots); err != nil {
			ps.count(-1)
			return nil, err
		}
		p.home = ps
	}
	p.child.Conn.SetDeadline(time.Now().Add(limit))
	return p, nil
}

// reuse gives an idle process. If none is idle in time it counts one more, which the caller
// starts, and gives nil.
func (ps *processes) reuse() (p *process) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if n := len(ps.idle); n > 0 {
		p, ps.idle = ps.idle[n-1], ps.idle[:n-1]
		return p
	}
	if ps.live > 0 {
		p = ps.wait()
	}
	if p == nil {
		ps.live++
	}
	return p
}

// wait is reuse with mu held, which it gives up while it waits.
func (ps *processes) wait() (p *process) {
	given := make(chan *process, 1)
	ps.waiting = append(ps.waiting, given)
	ps.mu.Unlock()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case p = <-given:
	case <-late.C:
	}
	ps.mu.Lock()
	if p == nil {
		ps.waiting = slices.DeleteFunc(ps.waiting, func(c chan *process) bool { return c == given })
		select {
		case p = <-given: // it came meanwhile
		default:
		}
	}
	return p
}

// count notes a process that has been left, or could not be started.
func (ps *processes) count(more int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.live += more
}

// give takes back a process that has answered all its requests.
func (ps *processes) give(p *process) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	switch {
	case ps.closed:
		p.leave(false)
		ps.live--
	case len(ps.waiting) > 0:
		ps.waiting[0] <- p // has room
		ps.waiting = ps.waiting[1:]
	default:
		ps.idle = append(ps.idle, p)
	}
}

// rest ends the idle processes, and with last those that are given back later too.
func (ps *processes) rest(last bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.idle {
		p.leave(false)
	}
	ps.live -= len(ps.idle)
	ps.idle, ps.closed = nil, ps.closed || last
}
