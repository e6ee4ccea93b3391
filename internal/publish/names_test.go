package publish

import (
	"strings"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

func TestFileName(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 16, 23, 12, 345e6, time.FixedZone("", 3600))
	zst, plain := FileName(at, kcdata.EnvelopeZstd), FileName(at, kcdata.EnvelopeZlib)
	if !strings.HasPrefix(zst, "stackshot-") || !strings.HasSuffix(zst, "-20261120T152312.345Z.kcdata.zst") ||
		!strings.HasSuffix(plain, "345Z.kcdata") {
		t.Errorf("%q, %q", zst, plain)
	}
	for in, want := range map[string]string{"a-b.c_9": "a-b.c_9", "../x\x1b[2J": ".._x__2J", "é": "_", "": ""} {
		if got := SafeName(in); got != want {
			t.Errorf("SafeName(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestSeriesNames(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	at := time.Date(2026, 11, 20, 15, 23, 12, 345e6, time.UTC)
	for output, want := range map[string]string{
		"":                 "stackshot-*-20261120T152312.345Z-0007.kcdata.zst",
		"dir/":             "dir/stackshot-*-20261120T152312.345Z-0007.kcdata.zst",
		"a.b/x":            "a.b/x-0007",
		"/x.kcdata":        "/x-0007.kcdata",
		"x.kcdata.zst":     "x-0007.kcdata.zst",
		"a.b/.kcdata":      "a.b/.kcdata-0007",
		"none/.kcdata.zst": "none/.kcdata.zst-0007",
		"x.1.gz":           "x.1-0007.gz",
	} {
		path, spare := Writer{}.NameSeries(t.Context(), output, kcdata.EnvelopeZstd).name(7, at)
		before, after, star := strings.Cut(want, "*")
		if !strings.HasPrefix(path, before) || !strings.HasSuffix(path, after) || !star && path != want {
			t.Errorf("-o %q: %s, want %s", output, path, want)
		}
		if !strings.HasPrefix(spare, "stackshot-") || strings.Contains(spare, "/") || !strings.HasSuffix(spare, "-0007.kcdata.zst") {
			t.Errorf("-o %q: spare name %s", output, spare)
		}
	}
	dir := t.TempDir()
	if path, _ := (Writer{}).NameSeries(t.Context(), dir, kcdata.EnvelopeZlib).name(12345, at); !strings.HasPrefix(path, dir+"/stackshot-") || !strings.HasSuffix(path, "-12345.kcdata") {
		t.Errorf("in a directory: %s", path)
	}
}
