package testelf

import (
	"os/exec"
	"regexp"
	"testing"

	"stackshot/internal/testneed"
)

var buildID = regexp.MustCompile(`Build ID: ([0-9a-f]+)`)

// BuildID is the build-id that readelf finds in a file, in hexadecimal; "" for none.
func BuildID(tb testing.TB, path string) string {
	tb.Helper()
	testneed.Program(tb, "readelf")
	out, err := exec.Command("readelf", "-n", path).Output()
	if err != nil {
		tb.Fatalf("readelf %s: %v", path, err)
	}
	if m := buildID.FindSubmatch(out); m != nil {
		return string(m[1])
	}
	return ""
}
