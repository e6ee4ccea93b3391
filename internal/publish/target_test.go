package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/testfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// spoolOf is a snapshot in memory, of any bytes.
func spoolOf(t *testing.T, content []byte) *Spool {
	t.Helper()
	s, err := NewSpool("test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.Write(content)
	if _, err := s.Size(); err != nil {
		t.Fatal(err)
	}
	return s
}

// asOther runs f on a thread that the file system takes for uid 65534.
func asOther(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		unix.Setfsgid(65534)
		unix.Setfsuid(65534)
		f()
	}()
	<-done
}

// The name in the place of last resort is of host and time: somebody took it.
func TestTakenSpareName(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	testneed.Root(t)
	name := fmt.Sprintf("stackshot-test-%d.kcdata.zst", os.Getpid())
	theirs := "/dev/shm/" + name
	asOther(t, func() {
		if err := os.WriteFile(theirs, []byte("theirs"), 0o600); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { os.Remove(theirs) })
	d := Destination{Writer: testWriter, Path: t.TempDir() + "/none/x", LastResort: name}
	where, err := d.Save(t.Context(), spoolOf(t, []byte("ours")))
	t.Cleanup(func() { os.Remove(where) })
	if filepath.Dir(where) != "/dev/shm" || where == theirs || !strings.HasSuffix(where, ".kcdata.zst") || !errors.Is(err, unix.ENOENT) {
		t.Errorf("written to %q, %v", where, err)
	}
	for file, want := range map[string]string{theirs: "theirs", where: "ours"} {
		if b, err := os.ReadFile(file); string(b) != want {
			t.Errorf("%s: %q, %v", file, b, err)
		}
	}
}

// A signal ends the wait for a target that does not answer, before the writing and in it: the
// snapshot is in the place of last resort, and the error says both.
func TestSignalLosesNothing(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	interrupted, path := errors.New("interrupted"), t.TempDir()+"/"+stallsWord
	writer := testWriter
	writer.Timeout = time.Hour
	for _, first := range []bool{true, false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		if first {
			cancel(interrupted)
		} else {
			time.AfterFunc(50*time.Millisecond, func() { cancel(interrupted) }) // time: it may come first all the same
		}
		d := Destination{Writer: writer, Path: path, Given: true, LastResort: fmt.Sprintf("stackshot-test-signal-%d-%v.kcdata", os.Getpid(), first)}
		where, err := d.Save(ctx, spoolOf(t, []byte("ours")))
		t.Cleanup(func() { os.Remove(where) })
		if b, readErr := os.ReadFile(where); filepath.Dir(where) != "/dev/shm" || string(b) != "ours" {
			t.Errorf("%q has %q, %v", where, b, readErr)
		}
		if !errors.Is(err, interrupted) || !strings.Contains(err.Error(), path+": not written") {
			t.Errorf("%v", err)
		}
	}
}

// openDir makes a directory that everybody can write to.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stackshot-publish-")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// eachFileSystem runs f in a directory of each kind of file system there is here,
// and writes in both ways: as a file without a name, and under a random one.
func eachFileSystem(t *testing.T, f func(t *testing.T, dir string, write func(*target, *os.File) error)) {
	t.Helper()
	ways := map[string]func(*target, *os.File) error{
		"unnamed": (*target).write,
		"named": func(x *target, data *os.File) error {
			err := x.writeNamed(data)
			if err != nil {
				x.abandon()
			}
			return err
		},
	}
	for way, write := range ways {
		for _, kind := range []string{"here", "/dev/shm", "tmpfs", "ramfs", "overlay"} {
			t.Run(way+" "+kind, func(t *testing.T) {
				root := t.TempDir()
				if kind == "/dev/shm" {
					var err error
					if root, err = os.MkdirTemp(kind, "stackshot-test-"); err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { os.RemoveAll(root) })
				}
				testfs.WithMounts(t, func(t *testing.T) {
					dir := root + "/dir"
					if err := os.Mkdir(dir, 0o755); err != nil {
						t.Fatal(err)
					}
					switch kind {
					case "tmpfs", "ramfs":
						testfs.Mount(t, "none", dir, kind, 0, "")
					case "overlay":
						mountOverlay(t, dir)
					}
					f(t, dir, write)
				})
			})
		}
	}
}

func mountOverlay(t *testing.T, dir string) {
	t.Helper()
	testfs.Mount(t, "none", dir, "tmpfs", 0, "")
	for _, sub := range []string{"lower", "upper", "work"} {
		if err := os.Mkdir(dir+"/"+sub, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	testfs.Mount(t, "none", dir, "overlay", 0, fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir))
}

// Whatever the file system, the rules on files that are there already are the same,
// and nothing unfinished stays.
func TestWriteOnEachFileSystem(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	data := spoolOf(t, []byte("content")).file
	eachFileSystem(t, func(t *testing.T, dir string, write func(*target, *os.File) error) {
		for i, c := range []struct {
			before  string
			replace bool
			owner   int
			refused bool
		}{
			{"", false, 0, false}, {"", true, 0, false}, {"old", true, 0, false}, {"old", false, 0, true}, {"old", true, 65534, true},
		} {
			name := fmt.Sprintf("%s/file%d", dir, i)
			x := newTarget(name, c.replace)
			if err := x.open(); err != nil {
				t.Fatal(err)
			}
			if c.before != "" { // it comes after the first look
				if err := errors.Join(os.WriteFile(name, []byte(c.before), 0o644), os.Chown(name, c.owner, c.owner)); err != nil {
					t.Fatal(err)
				}
			}
			err, want, mode := write(x, data), "content", os.FileMode(0o600)
			if c.refused {
				want, mode = c.before, 0o644
			}
			if errors.Is(err, ErrTarget) != c.refused || (err != nil) != c.refused {
				t.Errorf("%+v: %v", c, err)
			}
			if b, err := os.ReadFile(name); string(b) != want {
				t.Errorf("%+v: it holds %q, %v", c, b, err)
			}
			if st, err := os.Stat(name); err != nil || st.Mode() != mode {
				t.Errorf("%+v: %v, %v", c, st.Mode(), err)
			}
		}
		testfs.Only(t, dir, "file0", "file1", "file2", "file3", "file4")
	})
}

// On file systems of Linux's own a helper that is killed in the middle of a file
// leaves nothing.
func TestKilledWhileWriting(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	content := bytes.Repeat([]byte("0123456789abcdef"), 4<<20)
	data := spoolOf(t, content).file
	testfs.WithMounts(t, func(t *testing.T) {
		testfs.Mount(t, "none", dir, "tmpfs", 0, "size=128m")
		midway := 0
		for range 20 {
			o := order{Path: []byte(dir + "/file")}
			c, err := testWriter.start(t.Context(), o, data)
			if err != nil {
				t.Fatal(err)
			}
			asked := make(chan error)
			go func() { asked <- c.Ask(o, new(answer)) }()
			written := func() int64 {
				var fs unix.Statfs_t
				unix.Statfs(dir, &fs)
				return int64(fs.Blocks-fs.Bfree) * fs.Bsize
			}
			deadline := time.Now().Add(5 * time.Second)
			for written() == 0 && time.Now().Before(deadline) {
			}
			c.Process.Kill()
			c.Process.Wait()
			<-asked
			c.End()
			if _, err := os.Stat(dir + "/file"); err == nil {
				os.Remove(dir + "/file") // it was quick
			} else {
				midway++
			}
			testfs.Only(t, dir)
			if err := testtask.WaitFor(5*time.Second, func() (bool, error) { return written() == 0, nil }); err != nil {
				t.Fatalf("%d bytes stay: %v", written(), err)
			}
		}
		if midway == 0 {
			t.Error("no helper was killed in the middle of it")
		}
	})
}

// Somebody else makes, swaps and removes the target all the time, in a directory of
// everybody's: the file is ours and whole, or it is refused, and nobody else's file
// is touched.
func TestHostileTarget(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	t.Parallel()
	testneed.Root(t)
	dir := openDir(t)
	if err := unix.Chmod(dir, 0o1777); err != nil {
		t.Fatal(err)
	}
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("victim"), 0o600); err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		asOther(t, func() {
			for i := 0; !over.Load(); i++ {
				switch name := dir + "/file"; i % 4 {
				case 0:
					os.Symlink(victim, name)
				case 1:
					os.WriteFile(name, []byte("theirs"), 0o666)
				case 2:
					os.Mkdir(name, 0o777)
				}
				time.Sleep(time.Duration(i%7) * 10 * time.Microsecond)
				os.Remove(dir + "/file") // sticky: not ours
			}
		})
	}()
	data := spoolOf(t, []byte("content")).file
	outcomes := map[string]int{}
	for range 2000 {
		o := order{Path: []byte(dir + "/file"), Replace: true}
		a := o.carryOut(t.Context(), data)
		switch err := error(&a); {
		case a.OK:
			outcomes["written"]++
			if b, err := os.ReadFile(dir + "/file"); string(b) != "content" {
				t.Fatalf("after a success it holds %q, %v", b, err)
			}
			os.Remove(dir + "/file")
		case errors.Is(err, ErrTarget) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM):
			outcomes["refused"]++
		default:
			t.Fatal(err)
		}
	}
	over.Store(true)
	<-ended
	os.Remove(dir + "/file")
	testfs.Only(t, dir)
	if b, err := os.ReadFile(victim); string(b) != "victim" {
		t.Errorf("the victim holds %q, %v", b, err)
	}
	t.Log(outcomes)
	if outcomes["written"] == 0 || outcomes["refused"] == 0 {
		t.Errorf("one of both never came about: %v", outcomes)
	}
}

// Only a regular file of the same user is removed, and one that is gone is no error.
func TestRemove(t *testing.T) {
	dir := t.TempDir()
	file, link, sub := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "dir")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(file, link), os.Mkdir(sub, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, w := range []Writer{testWriter, {Command: []string{"/nonexistent"}, Timeout: time.Second}} {
		for path, refused := range map[string]bool{link: true, sub: true, filepath.Join(dir, "none"): false} {
			if err := w.Remove(context.Background(), path); errors.Is(err, ErrTarget) != refused || (err != nil) != refused {
				t.Errorf("%s: %v", path, err)
			}
		}
		if _, err := os.Stat(file); err != nil {
			t.Fatal("removed through a link: ", err)
		}
	}
	w := Writer{Command: []string{"/nonexistent"}, Timeout: time.Second}
	if err := w.Remove(context.Background(), file); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error("the file is still there: ", err)
	}
}
