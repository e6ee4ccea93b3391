package testvm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"stackshot/internal/testvm/wire"
)

// powerOff is how long a guest may take to power off after its exit code came;
// it then is ended, which changes no verdict.
const powerOff = 10 * time.Second

// recorder takes a guest's frames. Its fields are written by the goroutine that
// calls frame until the guest is done, and then read by result.
type recorder struct {
	t     *Test
	log   *os.File
	tail  tail
	files inbox
	r     Result
	exit  chan struct{} // closed when the exit code has come
	err   error         // of the host: a file that cannot be written

	heard  chan struct{} // output has come since it was last taken
	silent bool          // written by await: none came for too long
}

func newRecorder(t *Test) (*recorder, error) {
	log, err := os.Create(filepath.Join(t.Guest.LogDir, "output.log"))
	return &recorder{t: t, log: log, files: inbox{dir: t.OutDir}, exit: make(chan struct{}), heard: make(chan struct{}, 1), r: Result{Code: -1}}, err
}

func (c *recorder) close() { c.log.Close() }

func (c *recorder) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *recorder) frame(f wire.Frame) {
	switch f.Kind {
	case wire.Hello:
		c.r.Release = string(f.Body)
	case wire.Note:
		c.r.Notes = append(c.r.Notes, string(f.Body))
	case wire.Output:
		c.output(f.Body)
	case wire.File:
		if err := c.files.add(f.Body); err != nil {
			c.fail(err)
		}
	case wire.Exit:
		code, err := strconv.Atoi(string(f.Body))
		if err != nil || c.r.Code >= 0 {
			c.fail(fmt.Errorf("exit frame %q after code %d", f.Body, c.r.Code))
			return
		}
		c.r.Code = code
		close(c.exit)
	}
}

func (c *recorder) output(b []byte) {
	c.r.Output = true
	select {
	case c.heard <- struct{}{}:
	default:
	}
	c.tail.add(b, &c.r)
	if _, err := c.log.Write(b); err != nil {
		c.fail(err)
	}
	if c.t.Output != nil {
		c.t.Output.Write(b)
	}
}

// await returns when the guest has ended or nothing more is to be had from it.
func (c *recorder) await(ctx context.Context, g *Guest) {
	silence := time.NewTimer(first(c.t.Silence, 24*time.Hour))
	defer silence.Stop()
	for {
		select {
		case <-g.Done():
			return
		case <-ctx.Done():
			return
		case <-g.garbled:
			return
		case <-c.heard:
			silence.Reset(first(c.t.Silence, 24*time.Hour))
		case <-silence.C:
			c.silent = true
			return
		case <-c.exit:
			select {
			case <-g.Done():
			case <-time.After(powerOff):
			}
			return
		}
	}
}

// result judges a guest that has ended.
func (c *recorder) result(g *Guest) *Result {
	hung := ""
	switch {
	case c.silent:
		hung = fmt.Sprintf("no output for %v", c.t.Silence)
	case g.TimedOut():
		hung = overLimit
	}
	c.r.Files = c.files.names
	c.r.judge(g.Console(), hung, g.wireErr, g.exitErr)
	return &c.r
}
