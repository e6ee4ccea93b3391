package procfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stackshot/internal/testneed"

	"golang.org/x/sys/unix"
)

const testLimit = 200 * time.Millisecond

// fifoDir makes a directory with good files a, c and a FIFO b between them:
// opening it to read hangs in the kernel until it is opened to write.
func fifoDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a", "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("content of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "b"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// unblock lets every open of the FIFO return, until the pool has none written
// off: an opener that came too late for one writer gets the next.
func unblock(t *testing.T, r *Readers, dir string) {
	t.Helper()
	waitFor(t, "written-off helpers to come loose", func() bool {
		if fd, err := unix.Open(filepath.Join(dir, "b"), unix.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
			unix.Close(fd)
		}
		return r.WrittenOff() == 0
	})
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func threads(t *testing.T) int {
	t.Helper()
	ids, err := FS{}.Threads(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return len(ids)
}

// A hung open is written off, the files around it are read all the same.
func TestHungOpenIsWrittenOff(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	dir := fifoDir(t)
	r := NewReaders(3, testLimit)
	defer r.Close()
	files := []File{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "missing"}}
	start := time.Now()
	r.Read(dir, files)
	took := time.Since(start)
	var te *TimeoutError
	if !errors.As(files[1].Err, &te) || te.Path != dir+"/b" || !errors.Is(files[1].Err, ErrTimeout) {
		t.Errorf("b: %v", files[1].Err)
	}
	if string(files[0].Data) != "content of a" || string(files[2].Data) != "content of c" || files[0].Err != nil || files[2].Err != nil {
		t.Errorf("a %q %v, c %q %v", files[0].Data, files[0].Err, files[2].Data, files[2].Err)
	}
	if !errors.Is(files[3].Err, fs.ErrNotExist) || r.WrittenOff() != 1 {
		t.Errorf("missing: %v; written off %d", files[3].Err, r.WrittenOff())
	}
	if took < testLimit || took > 20*testLimit {
		t.Errorf("took %v with a limit of %v", took, testLimit)
	}
	unblock(t, r, dir)
}

// Invariants 1, 2 and 4: eight hang, one thread each; the ninth is refused at
// once; when they come loose the pool serves again.
func TestInvariant2ExhaustedAfterEight(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	dir := fifoDir(t)
	r := NewReaders(0, testLimit)
	defer r.Close()
	before := threads(t)
	var wg sync.WaitGroup
	var timeouts, refused atomic.Int32
	for range 2 * DefaultMaxWrittenOff { // twice as many as may hang
		wg.Go(func() {
			files := []File{{Name: "b"}}
			r.Read(dir, files)
			switch {
			case errors.Is(files[0].Err, ErrTimeout):
				timeouts.Add(1)
			case errors.Is(files[0].Err, ErrExhausted):
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	if timeouts.Load() != 8 || refused.Load() != 8 || r.WrittenOff() != 8 {
		t.Errorf("%d timeouts, %d refused, %d written off; want 8 of each", timeouts.Load(), refused.Load(), r.WrittenOff())
	}
	if n := threads(t) - before; n > 8+12 { // the runtime's own come and go
		t.Errorf("eight abandoned reads cost %d threads", n)
	}
	start := time.Now()
	files := []File{{Name: "a"}, {Name: "c"}}
	r.Read(dir, files)
	if took := time.Since(start); took > testLimit/2 {
		t.Errorf("refusing took %v", took)
	}
	for _, f := range files {
		if !errors.Is(f.Err, ErrExhausted) || len(f.Data) != 0 || !strings.Contains(f.Err.Error(), "8 written off") {
			t.Errorf("%s: %q %v", f.Name, f.Data, f.Err)
		}
	}
	unblock(t, r, dir)
	r.Read(dir, files)
	if files[0].Err != nil || string(files[1].Data) != "content of c" {
		t.Errorf("after they came loose: %v, %q", files[0].Err, files[1].Data)
	}
}

// Invariant 3: what a read brings after its write-off is dropped, and the
// helper's next result is the next read's.
func TestInvariant3LateResultIsDropped(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	r := NewReaders(1, testLimit)
	defer r.Close()
	hang := func(buf []byte) ([]byte, error) {
		b := buf[:0]
		b = append(b, make([]byte, 8)...)
		n, err := unix.Read(p[0], b)
		return b[:max(n, 0)], err
	}
	if got, err := r.Do(hang); !errors.Is(err, ErrTimeout) || len(got) != 0 {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := r.Do(hang); !errors.Is(err, ErrExhausted) {
		t.Fatalf("with max 1: %v", err)
	}
	if _, err := unix.Write(p[1], []byte("too late")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the pipe's reader", func() bool { return r.WrittenOff() == 0 })
	got, err := r.Do(func(buf []byte) ([]byte, error) { return append(buf, "fresh"...), nil })
	if string(got) != "fresh" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	again, err := r.Do(func(buf []byte) ([]byte, error) { return append(buf, "other"...), nil })
	if string(got) != "fresh" || string(again) != "other" || err != nil {
		t.Errorf("results are not copies: %q, %q, %v", got, again, err)
	}
	unix.Close(p[1])
}

// Invariant 5, and no helper outlives the pool once it is loose.
func TestInvariant5CloseWaitsForNobody(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	dir := fifoDir(t)
	r := NewReaders(2, testLimit)
	files := []File{{Name: "b"}}
	r.Read(dir, files)
	start := time.Now()
	r.Close()
	r.Close()
	if took := time.Since(start); took > testLimit {
		t.Errorf("Close took %v", took)
	}
	r.Read(dir, files)
	if !errors.Is(files[0].Err, ErrClosed) {
		t.Errorf("after Close: %v", files[0].Err)
	}
	unblock(t, r, dir)
}

// A caller that waits for room is woken when the last helper is written off.
func TestWaiterHearsExhaustion(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	dir := fifoDir(t)
	r := NewReaders(1, testLimit)
	defer r.Close()
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			files := []File{{Name: "b"}}
			r.Read(dir, files)
			errs[i] = files[0].Err
		})
	}
	wg.Wait()
	text := fmt.Sprint(errs)
	if strings.Count(text, ErrTimeout.Error()) != 1 || strings.Count(text, ErrExhausted.Error()) != 3 {
		t.Error(text)
	}
	unblock(t, r, dir)
}

// Many callers, some files hanging and coming loose all the while: every good
// file is read right, and invariant 1 holds at every look.
func TestReadersUnderLoad(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	testneed.Slow(t)
	dir := fifoDir(t)
	const limit = 2 * time.Millisecond // short, so that slow and hung mix
	r := NewReaders(4, limit)
	defer r.Close()
	var stop atomic.Bool
	var good atomic.Int64
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			files := []File{{Name: "a"}, {Name: "c"}}
			if i%2 == 0 {
				files = []File{{Name: "a"}, {Name: "b"}, {Name: "c"}}
			}
			for !stop.Load() {
				r.Read(dir, files)
				for _, f := range files {
					if f.Err == nil && f.Name != "b" {
						good.Add(1)
						if string(f.Data) != "content of "+f.Name {
							t.Errorf("%s: %q", f.Name, f.Data)
							return
						}
					}
				}
			}
		})
	}
	for end := time.Now().Add(700 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if fd, err := unix.Open(filepath.Join(dir, "b"), unix.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
			unix.Close(fd)
		}
		r.mu.Lock()
		if r.reading < 0 || r.writtenOff < 0 || r.reading+r.writtenOff > r.max {
			t.Errorf("invariant 1: reading %d, written off %d, max %d", r.reading, r.writtenOff, r.max)
		}
		r.mu.Unlock()
	}
	stop.Store(true)
	wg.Wait()
	unblock(t, r, dir)
	if good.Load() < 50 {
		t.Errorf("only %d good reads", good.Load())
	}
}

// Invariant 6, on both paths and by any spelling.
func TestInvariant6NeverEnviron(t *testing.T) {
	r := NewReaders(0, 0)
	defer r.Close()
	for _, f := range []FS{{}, {Readers: r}} {
		for _, name := range []string{"environ", "./environ", "task/../environ", "environ/"} {
			files := []File{{Name: name}, {Name: name, Op: OpLink}}
			f.Read("self", files)
			for _, file := range files {
				if !errors.Is(file.Err, ErrForbidden) || len(file.Data) != 0 {
					t.Errorf("%s: %q, %v", name, file.Data, file.Err)
				}
			}
		}
	}
}

// Timed and plain reads answer alike: contents, caps, links, lists, errors.
func TestTimedReadsLikeDirect(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"1": 0, "2": 1, "3": 4095, "4": 4096, "5": 4097, "6": DefaultMax, "7": DefaultMax + 1} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("target", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	var files []File
	for _, name := range []string{"1", "2", "3", "4", "5", "6", "7", "gone"} {
		files = append(files, File{Name: name}, File{Name: name, Max: 1}, File{Name: name, Max: 4096})
	}
	files = append(files, File{Name: "link", Op: OpLink}, File{Name: "link", Op: OpLink, Max: 3}, File{Name: "1", Op: OpLink},
		File{Name: ".", Op: OpList}, File{Name: "1", Op: OpList})
	r := NewReaders(0, 5*time.Second)
	defer r.Close()
	timed := append([]File(nil), files...)
	for _, where := range []string{"", "nowhere"} {
		FS{Root: dir}.Read(where, files)
		FS{Root: dir, Readers: r}.Read(where, timed)
		for i := range files {
			a, b := files[i], timed[i]
			if string(a.Data) != string(b.Data) || a.Truncated != b.Truncated || fmt.Sprint(a.Err) != fmt.Sprint(b.Err) {
				t.Errorf("%s op %d max %d: %d bytes %v %v, timed %d bytes %v %v", a.Name, a.Op, a.Max,
					len(a.Data), a.Truncated, a.Err, len(b.Data), b.Truncated, b.Err)
			}
			if limit := a.max(); a.Op == OpRead && a.Err == nil && (len(a.Data) > limit || a.Truncated && len(a.Data) != limit) {
				t.Errorf("%s max %d: %d bytes, truncated %v", a.Name, limit, len(a.Data), a.Truncated)
			}
		}
		if where == "" && (!files[18].Truncated || files[15].Truncated) {
			t.Errorf("cap: %d bytes truncated %v, %d bytes truncated %v", DefaultMax, files[15].Truncated, DefaultMax+1, files[18].Truncated)
		}
	}
}
