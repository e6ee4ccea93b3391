package stop

import (
	"runtime"
	"sync"
)

// processors keeps GOMAXPROCS high enough while any session has workers. A worker
// that comes back from its park needs a free P at once, and may not wait for
// another Go thread to give one up. The first session raises GOMAXPROCS, the last one
// puts it back.
var processors struct {
	mu       sync.Mutex
	sessions int // by mu
	before   int // by mu
}

func raiseProcessors(workers int) {
	p := &processors
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions == 0 {
		p.before = runtime.GOMAXPROCS(0)
	}
	p.sessions++
	if want := p.sessions * (2*workers + 2); runtime.GOMAXPROCS(0) < want {
		runtime.GOMAXPROCS(want)
	}
}

func restoreProcessors() {
	p := &processors
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions--; p.sessions == 0 {
		runtime.GOMAXPROCS(p.before)
	}
}
