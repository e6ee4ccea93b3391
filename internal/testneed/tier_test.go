package testneed

import "testing"

// A part of a test of tier lab is of tier lab. One part of a unit test does not make the test one, or
// its other parts.
func TestInLab(t *testing.T) {
	t.Setenv(LabVar, "1")
	of := func(t *testing.T, want bool) {
		t.Helper()
		if InLab(t) != want {
			t.Errorf("%s: in lab %v, want %v", t.Name(), !want, want)
		}
	}
	of(t, false)
	t.Run("part", func(t *testing.T) {
		Lab(t, Time)
		of(t, true)
		t.Run("a/b part", func(t *testing.T) { of(t, true) })
	})
	t.Run("other", func(t *testing.T) { of(t, false) })
	of(t, false)
	testing.Benchmark(func(b *testing.B) {
		if !InLab(b) {
			t.Error("a benchmark is not")
		}
	})
	tb := &ended{TB: t}
	done := make(chan struct{})
	go func() { // Fatalf ends the goroutine
		defer close(done)
		OnlyLab(tb, "a hog")
		tb.said = "goes on"
	}()
	<-done
	if want := "a hog is for tests of tier lab (testneed.Lab)"; tb.said != want || !tb.failed {
		t.Errorf("%q, failed %v", tb.said, tb.failed)
	}
}
