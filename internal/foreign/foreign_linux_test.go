package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

const testLimit = 200 * time.Millisecond

func newFiles(t *testing.T, o Options) *Files {
	t.Helper()
	if o.Limit == 0 {
		o.Limit = 10 * time.Second // what should answer may be slow on a busy host
	}
	f := New(asAsked(o))
	t.Cleanup(f.Close)
	return f
}

func write(t *testing.T, path string, b []byte) string {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Load is LoadFrom of a file that has to meet no condition.
func (f *Files) Load(path string, load func(r io.ReaderAt, size int64) (any, error)) (any, error) {
	return f.LoadFrom(Where{Path: path}, load)
}

func whole(r io.ReaderAt, size int64) (any, error) {
	return io.ReadAll(io.NewSectionReader(r, 0, size))
}

// wantErr asks for the kind of an error and for the file's name in it.
func wantErr(t *testing.T, v any, err, kind error, path string) {
	t.Helper()
	if !errors.Is(err, kind) || v != nil || !strings.Contains(fmt.Sprint(err), path) {
		t.Errorf("%s: %v, %v; want %v", path, v, err, kind)
	}
}

func TestLoadGivesTheFile(t *testing.T) {
	f := newFiles(t, Options{})
	for _, size := range []int{0, 1, 4096, 100_001} {
		content := bytes.Repeat([]byte("x1"), size)
		path := write(t, filepath.Join(t.TempDir(), "file"), content)
		v, err := f.Load(path, whole)
		if err != nil || !bytes.Equal(v.([]byte), content) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := f.Load("/proc/self/exe", whole); err != nil || !bytes.Equal(v.([]byte), want) {
		t.Errorf("/proc/self/exe: %v", err)
	}
}

// Invariant 4.
func TestInvariant4OnlyRegularFiles(t *testing.T) {
	testneed.Live(t)
	f := newFiles(t, Options{})
	dir := t.TempDir()
	fifo, sock := filepath.Join(dir, "fifo"), filepath.Join(dir, "socket")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	links := map[string]string{"tofifo": fifo, "tozero": "/dev/zero"}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{fifo, sock, dir, "/dev/zero", "/dev/null", "/dev/ptmx", filepath.Join(dir, "tofifo"), filepath.Join(dir, "tozero")} {
		v, err := f.Load(path, whole)
		wantErr(t, v, err, ErrNotRegular, path)
	}
	v, err := f.Load(filepath.Join(dir, "none"), whole)
	wantErr(t, v, err, fs.ErrNotExist, "none")
}

// Looking at a FIFO must not let its writer go on, as opening it would.
func TestInvariant4WriterOfAFIFOStaysBlocked(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	f := newFiles(t, Options{})
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		fd, err := unix.Open(fifo, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		opened <- err
	}()
	time.Sleep(50 * time.Millisecond) // until it blocks; sooner proves less, not wrong
	for range 100 {
		v, err := f.Load(fifo, whole)
		wantErr(t, v, err, ErrNotRegular, fifo)
	}
	select {
	case err := <-opened:
		t.Errorf("the writer went on: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	fd, err := unix.Open(fifo, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestSizeCaps(t *testing.T) {
	f := newFiles(t, Options{MaxSize: 1000})
	dir := t.TempDir()
	exact := write(t, filepath.Join(dir, "exact"), make([]byte, 1000))
	if _, err := f.Load(exact, whole); err != nil {
		t.Error(err)
	}
	over := write(t, filepath.Join(dir, "over"), make([]byte, 1001))
	v, err := f.Load(over, whole)
	wantErr(t, v, err, ErrTooLarge, over)
	huge := filepath.Join(dir, "huge") // 10 GiB, of which nothing is on the disk
	if err := errors.Join(os.WriteFile(huge, nil, 0o600), os.Truncate(huge, 10<<30)); err != nil {
		t.Fatal(err)
	}
	v, err = newFiles(t, Options{}).Load(huge, whole)
	wantErr(t, v, err, ErrTooLarge, huge)
	v, err = f.LoadFrom(Where{Path: exact, MaxSize: 999}, whole)
	wantErr(t, v, err, ErrTooLarge, exact)
}

func TestOwnedNotLinked(t *testing.T) {
	testneed.Live(t)
	f := newFiles(t, Options{})
	root := t.TempDir()
	path := write(t, filepath.Join(root, "perf-1.map"), []byte("1000 10 f\n"))
	if err := os.Symlink("perf-1.map", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	uid := uint32(os.Geteuid())
	owned := func(path string, uid uint32) Where {
		return Where{Root: root, Path: path, Owner: &uid, NoFollow: true}
	}
	if v, err := f.LoadFrom(owned("/perf-1.map", uid), whole); err != nil || string(v.([]byte)) != "1000 10 f\n" {
		t.Errorf("%v, %v", v, err)
	}
	v, err := f.LoadFrom(owned("/perf-1.map", uid+1), whole)
	wantErr(t, v, err, ErrOwner, path)
	v, err = f.LoadFrom(owned("/link", uid), whole)
	wantErr(t, v, err, ErrSymlink, root+"/link")
}

// Invariant 5: links and dots below a root lead nowhere else.
func TestInvariant5RootHolds(t *testing.T) {
	f := newFiles(t, Options{})
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "etc/passwd"), []byte("inside"))
	for name, target := range map[string]string{"abs": "/etc/passwd", "up": "../../../../../../etc/passwd", "dir": "/etc", "magic": "/proc/self/exe"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/etc/passwd", "/abs", "/up", "/dir/passwd", "/../etc/passwd"} {
		v, err := f.LoadFrom(Where{Root: root, Path: path}, whole)
		if err != nil || string(v.([]byte)) != "inside" {
			t.Errorf("%s: %q, %v", path, v, err)
		}
	}
	v, err := f.LoadFrom(Where{Root: root, Path: "/magic"}, whole)
	wantErr(t, v, err, fs.ErrNotExist, "/magic")
}

// Where no mountinfo can be read: every number of the table is refused, others are not,
// and Remote takes all.
func TestRemoteByStatfs(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "file"), []byte("content"))
	for _, asked := range []bool{false, true} {
		f := newFiles(t, Options{Remote: asked})
		f.views.readers.Close() // nothing is known by mountinfo
		var magic uint32
		f.fsType = func(*attempt) (uint32, error) { return magic, nil }
		for _, magic = range []uint32{unix.EXT4_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC} {
			if _, err := f.Load(path, whole); err != nil {
				t.Errorf("%#x: %v", magic, err)
			}
		}
		for _, magic = range []uint32{unix.NFS_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC,
			unix.SMB2_SUPER_MAGIC, unix.V9FS_MAGIC, unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.CODA_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC} {
			v, err := f.Load(path, whole)
			if asked {
				if err != nil {
					t.Errorf("%#x, asked for: %v", magic, err)
				}
				continue
			}
			wantErr(t, v, err, ErrRemote, path)
			if strings.HasSuffix(fmt.Sprint(err), ErrRemote.Error()+": ") {
				t.Errorf("%#x: %v names no kind", magic, err)
			}
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	f := newFiles(t, Options{})
	path := write(t, filepath.Join(t.TempDir(), "file"), []byte("content"))
	var raw unix.Stat_t
	if err := unix.Stat(path, &raw); err != nil {
		t.Fatal(err)
	}
	st, err := f.Stat(Where{Path: path})
	if err != nil || st != statOf(&raw) || st.Inode != raw.Ino || st.Size != 7 {
		t.Errorf("%+v, %v; stat %+v", st, err, raw)
	}
	v, err := f.LoadFrom(Where{Path: path, Check: func(got Stat) error {
		if got != st {
			t.Errorf("check of %+v, want %+v", got, st)
		}
		return ErrOther
	}}, func(io.ReaderAt, int64) (any, error) {
		t.Error("loaded all the same")
		return nil, nil
	})
	wantErr(t, v, err, ErrOther, path)
}

// Invariants 1 and 2: with as many files hanging as may, a further call ends within the
// limit; when they come loose, files are read again.
func TestInvariant2AllHang(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	f := New(asAsked(Options{Limit: testLimit}))
	defer f.Close()
	path := write(t, filepath.Join(t.TempDir(), "file"), []byte("content"))
	loose := make(chan struct{})
	hang := func(io.ReaderAt, int64) (any, error) { <-loose; return "late", nil }
	const mayHang = DefaultHelpers + maxStuck
	var timeouts atomic.Int32
	var wg sync.WaitGroup
	for range mayHang {
		wg.Go(func() {
			v, err := f.Load(path, hang)
			var te *procfs.TimeoutError
			if errors.As(err, &te) && te.Path == path && te.Limit == testLimit && v == nil {
				timeouts.Add(1)
			}
		})
	}
	start := time.Now()
	_, fifth := f.Load(path, hang) // waits for room at most until the others are written off, or takes one's place
	if took := time.Since(start); took > 20*testLimit {
		t.Errorf("a further one took %v with a limit of %v", took, testLimit)
	}
	wg.Wait()
	if n := timeouts.Load(); n < mayHang-1 || f.Hanging() != mayHang {
		t.Errorf("%d timeouts, %d hanging, a further one %v", n, f.Hanging(), fifth)
	}
	start = time.Now()
	v, err := f.Load(path, whole)
	wantErr(t, v, err, procfs.ErrExhausted, path)
	if took := time.Since(start); took > testLimit {
		t.Errorf("refusing took %v", took)
	}
	close(loose)
	if err := testtask.WaitFor(5*time.Second, func() (bool, error) { return f.Hanging() == 0, nil }); err != nil {
		t.Fatalf("they do not come loose: %v", err)
	}
	if v, err := f.Load(path, whole); err != nil || string(v.([]byte)) != "content" {
		t.Errorf("afterwards: %v, %v", v, err)
	}
}

// Invariant 3: a late callback's reads fail, and its result reaches nobody.
func TestInvariant3LateCallbackReadsNoFurther(t *testing.T) {
	testneed.Live(t)
	f := New(asAsked(Options{Limit: testLimit}))
	defer f.Close()
	path := write(t, filepath.Join(t.TempDir(), "file"), []byte("content"))
	loose, read := make(chan struct{}), make(chan error, 1)
	v, err := f.Load(path, func(r io.ReaderAt, size int64) (any, error) {
		<-loose
		_, err := r.ReadAt(make([]byte, 1), 0)
		read <- err
		return "late", nil
	})
	wantErr(t, v, err, procfs.ErrTimeout, path)
	close(loose)
	if err := <-read; !errors.Is(err, procfs.ErrTimeout) {
		t.Errorf("a late read: %v", err)
	}
	for range 10 {
		if v, err := f.Load(path, whole); err == nil && string(v.([]byte)) != "content" {
			t.Errorf("another's result: %q", v)
		}
	}
}

func TestCallbackErrorNamesTheFile(t *testing.T) {
	f := newFiles(t, Options{})
	path := write(t, filepath.Join(t.TempDir(), "file"), nil)
	mine := errors.New("not an ELF file")
	v, err := f.Load(path, func(io.ReaderAt, int64) (any, error) { return "half", mine })
	wantErr(t, v, err, mine, path)
	f.Close()
	v, err = f.Load(path, whole)
	wantErr(t, v, err, procfs.ErrClosed, path)
}

// A thousand files leave no descriptor and no thread.
func TestNothingLeft(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	count := func(dir string) int {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "file"), []byte("content"))
	nobody := uint32(12345)
	round := func(n int) {
		f := New(asAsked(Options{Limit: 10 * time.Second}))
		for range n {
			f.Load(path, whole)
			f.Load(dir, whole)
			f.Stat(Where{Path: path})
			f.LoadFrom(Where{Root: dir, Path: "/file", Owner: &nobody, NoFollow: true}, whole)
			f.LoadFrom(Where{Root: dir, Path: "/none", Owner: &nobody, NoFollow: true}, whole)
		}
		f.Close()
	}
	round(1)
	fds, threads := count("/proc/self/fd"), count("/proc/self/task")
	for range testneed.Length(40, 200) {
		round(5)
	}
	err := testtask.WaitFor(5*time.Second, func() (bool, error) {
		return count("/proc/self/fd") <= fds && count("/proc/self/task") <= threads+8, nil
	})
	if err != nil {
		t.Fatalf("descriptors: %d then, %d now; threads: %d then, %d now: %v", fds, count("/proc/self/fd"), threads, count("/proc/self/task"), err)
	}
}
