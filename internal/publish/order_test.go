package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/spawn"
	"stackshot/internal/testfs"
	"stackshot/internal/testneed"
)

const (
	serveWord  = "__serve"  // as the first argument: be the process that writes a file
	stallsWord = "__stalls" // a target of this name does not answer
)

var testWriter = Writer{Command: []string{"/proc/self/exe", serveWord}, Timeout: 10 * time.Second}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serveWord {
		if filepath.Base(os.Args[len(os.Args)-1]) == stallsWord {
			spawn.Serve(os.Stdin, func(order) answer { time.Sleep(time.Hour); return answer{} })
		}
		Serve(os.Stdin, os.Stdout)
		unix.Exit(0) // os.Exit would sleep for a second under the race detector
	}
	spawn.Limit, spareGrace = 20*time.Second, time.Minute
	os.Exit(m.Run())
}

// Where no helper process can be started, a thread of ours writes.
func TestSaveWithoutHelper(t *testing.T) {
	t.Parallel()
	data := spoolOf(t, []byte("content")).file
	dir := t.TempDir()
	o := order{Path: []byte(dir + "/file")}
	if a, err := new(Writer).askThread(context.Background(), o, data, errors.ErrUnsupported); err != nil || !a.OK {
		t.Fatal(a, err)
	}
	if b, err := os.ReadFile(dir + "/file"); string(b) != "content" {
		t.Errorf("%q, %v", b, err)
	}
	if a, err := new(Writer).askThread(context.Background(), o, data, errors.ErrUnsupported); err != nil || !errors.Is(&a, ErrTarget) {
		t.Errorf("a second time: %v, %v", a, err)
	}
	testfs.Only(t, dir, "file")
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// A process that stays writes many files without a helper: written, refused, looked for, removed or
// cut off, none leaves a descriptor.
func TestNoHelperNoDescriptor(t *testing.T) {
	testneed.Lab(t, testneed.Memory)
	path := filepath.Join(t.TempDir(), "x")
	data, err := os.CreateTemp(t.TempDir(), "data")
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	cut, cancel := context.WithCancel(context.Background())
	cancel()
	before := descriptors(t)
	for range 30 {
		for _, o := range []order{{Look: true}, {}, {}, {Replace: true}, {Remove: true}} {
			o.Path = []byte(path)
			o.carryOut(context.Background(), data)
			o.carryOut(cut, data)
		}
	}
	now := descriptors(t)
	for until := time.Now().Add(10 * time.Second); now > before+2 && time.Now().Before(until); now = descriptors(t) {
		time.Sleep(time.Millisecond) // those that were cut off end by themselves
	}
	if now > before+2 {
		t.Errorf("%d descriptors, %d before", now, before)
	}
}

// What a helper answers is the error that it had: its words, its errno, whether it
// refused the target.
func TestAnswerIsTheError(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		nil, fmt.Errorf("x: %w", unix.ENOSPC), newTarget("x", true).refuse("it is a directory"), errors.New("any"),
	} {
		var a answer
		b, _ := json.Marshal(answerOf(err))
		if e := json.Unmarshal(b, &a); e != nil {
			t.Fatal(e)
		}
		if err == nil {
			if !a.OK {
				t.Errorf("%+v", a)
			}
			continue
		}
		for _, kind := range []error{unix.ENOSPC, ErrTarget, unix.Errno(0)} {
			if errors.Is(&a, kind) != errors.Is(err, kind) {
				t.Errorf("%v: is %v: %v", err, kind, errors.Is(&a, kind))
			}
		}
		if a.OK || a.Error() != err.Error() {
			t.Errorf("%v: %+v", err, a)
		}
	}
}

// The order is carried out by a process, so that a thread of ours never hangs
// in a file system; it goes when the context goes.
func TestAskIsCut(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	if a, err := new(Writer).askThread(ctx, order{Path: []byte("x")}, nil, errors.ErrUnsupported); err != nil || a.OK {
		t.Errorf("%v, %v", a, err)
	}
}

// Whoever is interrupted while the file is written says the truth about it: written where
// it is there under its name, however late, and not written where there is nothing.
func TestInterruptedWriteIsTrue(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	t.Parallel()
	data := spoolOf(t, make([]byte, 1<<20)).file
	dir := openDir(t)
	var written, not int
	for i := range 60 {
		file := dir + "/file"
		o := order{Path: []byte(file), Replace: true}
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for end := time.Now().Add(time.Duration(i) * time.Millisecond); i%2 == 0 && time.Now().Before(end) || i%2 == 1; {
				if _, err := os.Lstat(file); err == nil || ctx.Err() != nil {
					break
				}
			}
			cancel(errors.New("interrupted"))
		}()
		err := testWriter.ask(ctx, o, data, 10*time.Second)
		cancel(nil)
		<-done
		if _, none := os.Lstat(file); (err == nil) != (none == nil) {
			t.Errorf("%d: %v, but: %v", i, err, none)
		}
		if err == nil {
			written++
		} else {
			not++
		}
		os.Remove(file)
		testfs.Only(t, dir)
	}
	if written == 0 || not == 0 {
		t.Errorf("%d were written, %d not", written, not)
	}
}

// A name need not be UTF-8: the file has it, byte for byte.
func TestNameOfAnyBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := Destination{Writer: testWriter, Path: dir + "/\xff\n\xc3x", LastResort: "none", NoLastResort: true}
	if where, err := d.Save(t.Context(), spoolOf(t, []byte("content"))); where != d.Path || err != nil {
		t.Errorf("%q, %v", where, err)
	}
	testfs.Only(t, dir, filepath.Base(d.Path))
}
