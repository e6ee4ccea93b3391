package topology

import (
	"errors"
	"io"
	"io/fs"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// stuck is a /sys of which one file answers when the test lets it, and has no end.
type stuck struct {
	fs.FS
	name  string
	loose chan struct{}
	asked atomic.Int32
	given atomic.Int64 // bytes
}

func (s *stuck) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err == nil && name == s.name {
		s.asked.Add(1)
		return &stuckFile{f, s}, nil
	}
	return f, err
}

type stuckFile struct {
	fs.File
	of *stuck
}

func (f *stuckFile) Read(b []byte) (int, error) {
	<-f.of.loose
	for i := range b {
		b[i] = ' '
	}
	f.of.given.Add(int64(len(b)))
	if f.of.given.Load() > 1<<20 {
		return 0, io.ErrUnexpectedEOF
	}
	return len(b), nil
}

// A device that does not answer costs one question and its limit, however often is
// asked, and a file without end a page.
func TestThrottlesInTime(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	b := smp4()
	b.cooler(0, "idle-cpu1", "30")
	b.cooler(1, "idle-cpu2", "30")
	sys := &stuck{FS: fstest.MapFS(b), name: coolingDir + "/cooling_device0/cur_state", loose: make(chan struct{})}
	r := NewThrottleReader(func(cpus []int) map[int]string { return ReadThrottles(sys, cpus) })
	defer r.Close()
	began := time.Now()
	if hot, err := r.Read([]int{1, 2}); !errors.Is(err, procfs.ErrTimeout) || hot != nil {
		t.Errorf("%v, %v", hot, err)
	}
	for range 100 {
		if hot, err := r.Read([]int{1, 2}); !errors.Is(err, procfs.ErrExhausted) || hot != nil {
			t.Errorf("%v, %v", hot, err)
		}
	}
	if took := time.Since(began); took > 10*ThrottleLimit || sys.asked.Load() != 1 {
		t.Errorf("%v, %d questions", took, sys.asked.Load())
	}
	close(sys.loose)
	var hot map[int]string
	answered := func() (done bool, err error) {
		hot, err = r.Read([]int{1, 2})
		return !errors.Is(err, procfs.ErrExhausted), nil
	}
	if err := testtask.WaitFor(10*time.Second, answered); err != nil {
		t.Fatal(err)
	}
	if hot[1] != "" || hot[2] == "" || sys.given.Load() > 4*maxText {
		t.Errorf("%v, %d bytes read", hot, sys.given.Load())
	}
}
