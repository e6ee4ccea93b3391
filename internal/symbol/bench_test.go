package symbol

import (
	"cmp"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"stackshot/internal/foreign"
	"stackshot/kcdata"
)

const (
	benchFiles   = 50
	benchThreads = 4000
	benchFrames  = 12
)

// benchTasks are 4,000 threads of 50 programs, the largest of this machine, with
// 12 frames each, a third of them in libc.
func benchTasks(b *testing.B) []*kcdata.Task {
	b.Helper()
	rnd := rand.New(rand.NewPCG(5, 6))
	libc, _ := filepath.Glob("/lib/*-linux-gnu/libc.so.6")
	var tasks []*kcdata.Task
	for _, path := range largest(b, "/usr/bin/*", "/usr/lib/*-linux-gnu/*.so.*") {
		t := &kcdata.Task{ID: uint64(len(tasks) + 1)}
		var addrs [2][]uint64
		for i, file := range []string{path, libc[0]} {
			m, at := benchMapping(b, file, uint64(i+1)<<40)
			t.Mappings, addrs[i] = append(t.Mappings, m), at
		}
		for range benchThreads / benchFiles {
			th := &kcdata.Thread{}
			for i := range benchFrames {
				from := addrs[min(i%3, 1)]
				th.User = append(th.User, from[rnd.IntN(len(from))])
			}
			t.Threads = append(t.Threads, th)
		}
		tasks = append(tasks, t)
	}
	return tasks
}

func largest(b *testing.B, globs ...string) []string {
	b.Helper()
	size := map[string]int64{}
	for _, glob := range globs {
		paths, _ := filepath.Glob(glob)
		for _, p := range paths {
			p, err := filepath.EvalSymlinks(p)
			if err != nil {
				continue
			}
			r, err := os.Open(p)
			if err != nil {
				continue
			}
			st, _ := r.Stat()
			if f, err := Open(r, st.Size()); err == nil && len(f.BuildID()) > 0 && len(f.syms.syms) > 100 {
				size[p] = st.Size()
			}
			r.Close()
		}
	}
	paths := make([]string, 0, len(size))
	for p := range size {
		paths = append(paths, p)
	}
	slices.SortFunc(paths, func(x, y string) int { return cmp.Or(cmp.Compare(size[y], size[x]), cmp.Compare(x, y)) })
	if len(paths) < benchFiles {
		b.Fatalf("only %d programs here", len(paths))
	}
	return paths[:benchFiles]
}

// benchMapping maps a whole file, and gives addresses in its functions.
func benchMapping(b *testing.B, path string, base uint64) (kcdata.Mapping, []uint64) {
	b.Helper()
	f := opened(b, path)
	var addrs []uint64
	for _, y := range f.syms.syms {
		if off, ok := f.offset(y.addr); ok {
			addrs = append(addrs, base+off+uint64(y.size)/2)
		}
	}
	return kcdata.Mapping{LinuxMapping: kcdata.LinuxMapping{Start: base, End: base + 1<<32}, Path: path, BuildID: f.BuildID()}, addrs
}

// BenchmarkResolve names a capture with nothing known, and once more: both in
// one run, in turns.
func BenchmarkResolve(b *testing.B) {
	tasks := benchTasks(b)
	var cold, warm time.Duration
	named := 0
	for b.Loop() {
		files := foreign.New(foreign.Options{Limit: time.Minute})
		r := NewResolver(files, Options{CacheBytes: 1 << 30, Limit: time.Minute})
		began := time.Now()
		res := r.Resolve(context.Background(), tasks)
		cold += time.Since(began)
		began = time.Now()
		r.Resolve(context.Background(), tasks)
		warm += time.Since(began)
		files.Close()
		named = 0
		for t, table := range res.Tasks {
			for _, th := range t.Threads {
				for i := range th.User {
					if f := table.Functions(th.UserPlace(i)); len(f) > 0 && f[0].Name != "" {
						named++
					}
				}
			}
		}
	}
	b.ReportMetric(float64(cold.Milliseconds())/float64(b.N), "cold-ms")
	b.ReportMetric(float64(warm.Milliseconds())/float64(b.N), "warm-ms")
	b.ReportMetric(cold.Seconds()/warm.Seconds(), "cold/warm")
	b.ReportMetric(float64(named), "addresses")
}

// BenchmarkLines names one address with its line in a small Go program, from
// nothing.
func BenchmarkLines(b *testing.B) {
	prog := goProgram(b)
	f := opened(b, prog)
	at := symbolAt(b, prog, "main.main") + 8
	for b.Loop() {
		sections, err := f.debugSections()
		if err != nil {
			b.Fatal(err)
		}
		lines, err := newLineTable(context.Background(), sections)
		if err != nil {
			b.Fatal(err)
		}
		if places, err := lines.Places(context.Background(), at); err != nil || len(places) == 0 || places[0].Line == 0 {
			b.Fatal(places, err)
		}
	}
}
