package testvm

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/testneed"
)

// Every bad end is reported for what it is, within the guest's limit, and only
// a guest whose kernel faulted is tried again.
func TestEndsAreToldApart(t *testing.T) {
	testneed.Guests(t)
	k := requireVM(t, "amd64", "6.12")
	b := builder(t)
	for _, c := range []struct {
		end      string
		limit    time.Duration
		verdict  Verdict
		code     int
		why      string
		attempts int
		running  string
	}{
		{"fail", 2 * time.Minute, Failed, 3, "exit code 3", 1, ""},
		{"panic", 2 * time.Minute, Panicked, -1, "Kernel panic - not syncing: sysrq triggered crash", 2, "TestVictim"},
		{"garbage", 2 * time.Minute, Garbled, -1, "not a frame", 1, "TestVictim"},
		{"poweroff", 2 * time.Minute, Lost, -1, "no exit code", 1, "TestVictim"},
		{"hang", time.Minute, Hung, -1, "no end within the limit", 1, "TestVictim"},
	} {
		t.Run(c.end, func(t *testing.T) {
			r := runVictim(t, b, Test{Guest: Config{Kernel: k, Limit: c.limit}}, c.end)
			if r.Verdict != c.verdict || r.Code != c.code || !strings.Contains(r.Why, c.why) || r.Attempts != c.attempts || r.Running != c.running {
				t.Errorf("%+v\nwant %s, code %d, %q, %d attempts, in %q", r, c.verdict, c.code, c.why, c.attempts, c.running)
			}
			if most := c.limit + 20*time.Second; r.Took > most {
				t.Errorf("took %v, want at most %v", r.Took, most)
			}
			if r.Release != k.Release {
				t.Errorf("release %q, want %q", r.Release, k.Release)
			}
		})
	}
}

func runVictim(t *testing.T, b *Builder, test Test, end string) *Result {
	t.Helper()
	test.Package, test.Env, test.Guest.LogDir = "internal/testvm", []string{victimVar + "=" + end}, t.TempDir()
	var out bytes.Buffer
	test.Output = &out
	r, err := Run(t.Context(), b, test)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	t.Log(r)
	if !strings.Contains(out.String(), "=== RUN   TestVictim\n") {
		t.Errorf("output %q has no test line", out.Bytes())
	}
	return r
}

// Files of the guest come back whole, whatever their size.
func TestFilesComeBack(t *testing.T) {
	testneed.Guests(t)
	k := requireVM(t, "amd64", "6.12")
	dir := t.TempDir()
	r := runVictim(t, builder(t), Test{Guest: Config{Kernel: k, Limit: 2 * time.Minute}, OutDir: dir}, "files")
	if r.Verdict != Passed || len(r.Tests) != 1 || r.Tests[0].Outcome != "PASS" {
		t.Fatalf("%+v", r)
	}
	slices.Sort(r.Files)
	if !slices.Equal(r.Files, []string{"big", "empty", "small"}) {
		t.Errorf("files %q", r.Files)
	}
	for name, size := range map[string]int{"empty": 0, "small": 5, "big": 200_000} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(b) != size {
			t.Errorf("%s: %d bytes, %v, want %d", name, len(b), err, size)
		}
		for i := range b {
			if b[i] != byte(i%251) {
				t.Fatalf("%s: byte %d is %d", name, i, b[i])
			}
		}
	}
}

// A guest that said nothing at all is tried once more, and no more.
func TestSilentGuestIsTriedAgain(t *testing.T) {
	testneed.Guests(t)
	k := requireVM(t, "amd64", "6.12")
	var out bytes.Buffer
	dir := t.TempDir()
	r, err := Run(t.Context(), builder(t), Test{Package: "internal/testvm", Output: &out,
		Guest: Config{Kernel: k, Limit: time.Second, LogDir: dir}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != Hung || r.Attempts != 2 || r.Output || r.Release != "" {
		t.Errorf("%+v", r)
	}
	if n := strings.Count(out.String(), "once more"); n != 1 || !strings.Contains(r.String(), "attempt 2") {
		t.Errorf("%d announcements of a second attempt in %q; result %q", n, out.String(), r)
	}
	for _, name := range []string{"1/console.log", "1/result.txt", "2/console.log", "2/result.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
