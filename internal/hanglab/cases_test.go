//go:build linux && (amd64 || arm64)

package hanglab

import (
	"os"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

func TestMain(m *testing.M) {
	testtask.MaybeRun()
	os.Exit(m.Run())
}

// Every case comes to its state, one at a time and all at once, and all who play in it
// are there.
func TestCases(t *testing.T) {
	testneed.Slow(t)
	l := New(t)
	names := map[string]bool{}
	for _, c := range Cases() {
		if names[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		names[c.Name] = true
		t.Run(c.Name, func(t *testing.T) { l.Start(t, c) })
	}
	t.Run("together", func(t *testing.T) {
		testtask.Start(t, testtask.Bystanders(testneed.Length(50, 500)))
		for _, c := range Cases() {
			if c.Lacks() == "" && !c.Alone {
				l.Start(t, c)
			}
		}
	})
}
