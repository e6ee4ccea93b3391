package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"stackshot/internal/clock"
	"stackshot/internal/testtask"
)

// BenchmarkFirst20000 is how long a person waits beside a process of 20,000 threads:
//
//	screen-ms    from the release of the CPUs to the first line of `stackshot`
//	report-ms    `stackshot report FILE | head`, start to end
//	names-ms     what of that the look for names of user stacks takes
//	report-cpu-ms, with its helper processes
//
// Medians of the rounds; each round makes a file of its own.
func BenchmarkFirst20000(b *testing.B) {
	testtask.Start(b, testtask.ManyThreads(20_000))
	file := filepath.Join(b.TempDir(), "first.kcdata.zst")
	of := map[string][]float64{}
	note := func(name string, d time.Duration) { of[name] = append(of[name], d.Seconds()*1e3) }
	for b.Loop() {
		_, at := firstLines(b, 1, "take", "--max-pause", "2s", "-o", file)
		s := snapshotOf(b, file)
		if s.ThreadCount() < 20_000 {
			b.Fatal("too few threads: ", s.ThreadCount())
		}
		last := s.Tries[len(s.Tries)-1]
		note("screen-ms", time.Duration(at-int64(s.Capture.StopNs)-int64(last.StoppedNs)))
		began := time.Now()
		cpu, _ := firstLines(b, 10, "report", file)
		note("report-ms", time.Since(began))
		note("report-cpu-ms", cpu)
		without := time.Now()
		firstLines(b, 10, "report", "--no-symbols", file)
		note("names-ms", without.Sub(began)-time.Since(without))
	}
	for name, list := range of {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], name)
	}
}

// firstLines runs a command until it has written some lines, then hangs up, as head does, and
// waits for its end. It gives its CPU time, and when the last of the lines came: CLOCK_MONOTONIC, ns.
func firstLines(b *testing.B, lines int, args ...string) (cpu time.Duration, at int64) {
	b.Helper()
	c := exec.Command(program, args...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	in := bufio.NewScanner(out)
	for range lines {
		if !in.Scan() {
			b.Fatalf("%v: the output ends before line %d", args, lines)
		}
	}
	at = clock.Nanotime()
	out.Close()
	err = c.Wait()
	status, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	if code := c.ProcessState.ExitCode(); code != exitWhole && code != exitIncomplete && !(ok && status.Signal() == syscall.SIGPIPE) {
		b.Fatalf("%v: %v", args, err)
	}
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime(), at
}
