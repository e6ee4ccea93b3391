package pager

import (
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// signals are those that come to this process while the pager runs (P2).
type signals struct {
	ch   chan os.Signal
	once sync.Once

	leaving atomic.Bool // a signal is about to end this process
}

// catch is called before the pager starts: from then on Ctrl-C must not end us before it. The
// pager has the signals' default actions all the same.
func catch() *signals {
	s := &signals{ch: make(chan os.Signal, 8)}
	for _, one := range []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP} {
		if !signal.Ignored(one) { // nohup's
			signal.Notify(s.ch, one)
		}
	}
	return s
}

func (s *signals) stop() {
	s.once.Do(func() {
		signal.Stop(s.ch)
		close(s.ch)
	})
}

// patience is how long a pager may take to end after SIGTERM.
const patience = time.Second

// serve leaves the keys' signals to the pager. Any other ends the pager, and then this process.
func (s *signals) serve(w *Writer) {
	for one := range s.ch {
		if one == unix.SIGINT || one == unix.SIGQUIT {
			continue
		}
		s.leaving.Store(true)
		w.cmd.Process.Signal(unix.SIGTERM)
		select {
		case <-w.ended:
		case <-time.After(patience):
			w.cmd.Process.Kill()
			<-w.ended
		}
		raise(one.(unix.Signal)) // which has its default action again
	}
}

// raise ends this process by a signal.
func raise(s unix.Signal) {
	signal.Reset(s)
	unix.Kill(os.Getpid(), s)
	time.Sleep(patience)
	os.Exit(128 + int(s))
}
