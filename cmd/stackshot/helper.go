package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"stackshot/internal/spawn"
)

// The helper process is this program again, as "stackshot __save", with a socket for
// its order and its answer as files 0 and 2, where the last words of a crash go too,
// and the snapshot as file 1. Its one argument is for people. It has no other file of
// ours, so whoever waits for our output does not wait for it.
const saveVerb = "__save"

// helperName is the helper's name in the kernel, where it may show in a
// snapshot: 15 bytes at most.
const helperName = "stackshot-save"

// saveOrder is what the helper is asked, as one line.
type saveOrder struct {
	Path    string `json:"path"`
	Replace bool   `json:"replace"`
	Look    bool   `json:"look"` // say only whether it could be written
}

// saveAnswer is the one line that the helper writes.
type saveAnswer struct {
	OK      bool   `json:"ok"`
	Refused bool   `json:"refused"` // the target is of a kind that is never written
	Error   string `json:"error"`
	Errno   int    `json:"errno"`
}

// saveError is the helper's answer as an error again.
type saveError struct {
	text    string
	errno   unix.Errno
	refused bool
}

func (e *saveError) Error() string { return e.text }

func (e *saveError) Is(target error) bool {
	return target == errTarget && e.refused || target == e.errno && e.errno != 0
}

func (a saveAnswer) err() error {
	if a.OK {
		return nil
	}
	return &saveError{text: a.Error, errno: unix.Errno(a.Errno), refused: a.Refused}
}

func answerOf(err error) saveAnswer {
	if err == nil {
		return saveAnswer{OK: true}
	}
	a := saveAnswer{Error: err.Error(), Refused: errors.Is(err, errTarget)}
	var errno unix.Errno
	if errors.As(err, &errno) {
		a.Errno = int(errno)
	}
	return a
}

// carryOut does what an order says. It may hang, for good.
func (o saveOrder) carryOut(t *target, data *os.File) error {
	t.path, t.replace = o.Path, o.Replace
	if err := t.open(); err != nil || o.Look {
		return err
	}
	return t.write(data)
}

func saveCommand() *cobra.Command {
	return &cobra.Command{
		Use:    saveVerb,
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(*cobra.Command, []string) error {
			conn := os.Stdin
			if err := spawn.Hello(conn); err != nil {
				return err
			}
			var o saveOrder
			if err := json.NewDecoder(conn).Decode(&o); err != nil {
				return fmt.Errorf("%s: %w", saveVerb, err) // nobody waits for us any more
			}
			nameThread(helperName)
			if isUrgent() { // as is who asks: with a budget of its own
				var u urgency
				u.begin()
			}
			var t target
			var once sync.Once
			answer := func(err error) (sent error) {
				once.Do(func() { sent = json.NewEncoder(conn).Encode(answerOf(err)) })
				return sent
			}
			onTerminate(&t, answer)
			return answer(o.carryOut(&t, os.Stdout))
		},
	}
}

// lastWord is how long a helper that is given up may take to answer all the same.
const lastWord = 300 * time.Millisecond

// onTerminate cleans up when our starter gives us up. It needs a thread that
// does not hang, and has one: the hanging one is in a system call. Where the file has
// its name by then the answer is that, though the directory may not be on the disk yet.
func onTerminate(t *target, answer func(error) error) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGTERM)
	go func() {
		<-ch
		t.cancel()
		for end := time.Now().Add(lastWord); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if t.named.Load() {
				answer(nil)
				break
			}
		}
		os.Exit(exitFailed)
	}()
}

// nameThread names the main thread, hence the process: tasks are listed by it.
func nameThread(name string) {
	os.WriteFile("/proc/self/comm", []byte(name), 0)
}
