package pager

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Writer shows what is written to it by a pager, which the first byte starts. Its caller writes
// from one goroutine and closes it.
type Writer struct {
	out     *os.File // the terminal
	command string
	asked   bool              // the user named the pager
	warn    func(text string) // says in one line what went wrong

	begun   bool
	plain   bool // the pager did not start: everything goes to out
	pipe    *os.File
	cmd     *exec.Cmd
	signals *signals
	state   *term.State   // of the terminal before the pager
	ended   chan struct{} // closed once the pager is no more, and has been waited for
	kept    []byte        // what was written, as long as nobody may have read it
	most    int           // bytes that the pipe holds: more than that was read by somebody
}

// New makes a writer for command, which is not empty.
func New(out *os.File, command string, asked bool, warn func(text string)) *Writer {
	return &Writer{out: out, command: command, asked: asked, warn: warn}
}

// Write gives unix.EPIPE after the reader has left.
func (w *Writer) Write(p []byte) (int, error) {
	if !w.begun {
		w.begun = true
		if err := w.start(); err != nil {
			w.refuse(err)
		}
	}
	if w.plain {
		return w.out.Write(p)
	}
	n, err := w.pipe.Write(p)
	w.keep(p[:n])
	if err == nil || !errors.Is(err, unix.EPIPE) {
		return n, err
	}
	w.end()
	if !w.never() {
		return n, err
	}
	if err := w.replay(); err != nil {
		return n, err
	}
	m, err := w.out.Write(p[n:])
	return n + m, err
}

// Close waits until the reader has left the pager.
func (w *Writer) Close() error {
	if !w.begun || w.plain {
		return nil
	}
	w.end()
	if w.never() {
		return w.replay()
	}
	return nil
}

func (w *Writer) start() error {
	in, pipe, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	w.most = capacity(pipe)
	w.cmd = process(w.command)
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = in, w.out, os.Stderr
	w.cmd.Env = environment(os.Environ(), os.LookupEnv)
	w.state, _ = term.GetState(int(w.out.Fd()))
	w.pipe, w.ended = pipe, make(chan struct{})
	w.signals = catch()
	if err := w.cmd.Start(); err != nil {
		w.signals.stop()
		pipe.Close()
		return err
	}
	go w.signals.serve(w)
	go w.wait()
	return nil
}

// capacity is how many bytes a pipe holds.
func capacity(pipe *os.File) (n int) {
	if c, err := pipe.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { n, _ = unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0) })
	}
	return n
}

// wait waits for the end of the pager. After it a signal ends this process as ever.
func (w *Writer) wait() {
	w.cmd.Wait()
	status, _ := w.cmd.ProcessState.Sys().(interface{ Signaled() bool })
	if w.state != nil && status != nil && status.Signaled() {
		term.Restore(int(w.out.Fd()), w.state)
	}
	w.signals.stop()
	close(w.ended)
}

// end tells the pager that there is no more, and waits until the reader has left it.
func (w *Writer) end() {
	w.pipe.Close()
	<-w.ended
	if w.signals.leaving.Load() {
		select {} // a signal ends this process now
	}
}

// keep remembers what the pipe may still hold.
func (w *Writer) keep(p []byte) {
	if w.most <= 0 {
		return
	}
	if len(w.kept)+len(p) > w.most {
		w.most, w.kept = 0, nil
		return
	}
	w.kept = append(w.kept, p...)
}

// never reports whether the pager ended without having begun: a shell, or the dynamic linker,
// found no such program (127), or one that cannot be run (126), and has read nothing.
func (w *Writer) never() bool {
	code := w.cmd.ProcessState.ExitCode()
	return w.most > 0 && (code == 126 || code == 127)
}

// replay writes to the terminal what the pager did not show.
func (w *Writer) replay() error {
	w.refuse(fmt.Errorf("exit code %d", w.cmd.ProcessState.ExitCode()))
	_, err := w.out.Write(w.kept)
	w.kept = nil
	return err
}

// refuse goes on without a pager. It is no news that there is no less where nobody asked for it.
func (w *Writer) refuse(err error) {
	w.plain = true
	if w.asked || !errors.Is(err, exec.ErrNotFound) {
		var failed *exec.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		w.warn(fmt.Sprintf("the pager %q does not start: %v: the output goes on without it", w.command, err))
	}
}
