package cgroupname

import (
	"strings"
	"testing"

	"stackshot/internal/show"
)

func examples() (all [][2]string) {
	for _, r := range table {
		all = append(all, r.paths...)
	}
	return append(all, unitPaths...)
}

// Every example of the tables has its short name. Each row has examples of its own: the row
// that names it is the row in which it stands.
func TestExamples(t *testing.T) {
	for _, c := range examples() {
		if got := Short(c[0]); got != c[1] {
			t.Errorf("%s is %q, want %q", c[0], got, c[1])
		}
	}
	for i, r := range table {
		if len(r.paths) == 0 {
			t.Errorf("row %d has no example", i)
		}
		for _, c := range r.paths {
			first := 0
			for ; !table[first].pattern.MatchString(strings.Trim(c[0], "/")); first++ {
			}
			if first != i {
				t.Errorf("%s is of row %d, and stands in row %d", c[0], first, i)
			}
		}
	}
}

// What no row knows is its own name, and nearly a container is none.
func TestOwnNames(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "/": "", "//": "", "/batch": "/batch", "/batch/nightly": "/batch/nightly", "/../..": "/../..",
		"/docker/" + sampleID[:63]:      "/docker/" + sampleID[:48] + "",
		"/docker/" + sampleID[1:] + "G": "",
		"/podman":                       "/podman",
		"/x\x1b[31m":                    `/x\x1b[31m`,
		"/kubepods/burstable":           "/kubepods/burstable",
		"/kubepods.slice":               "kubepods.slice",
	} {
		got := Short(path)
		if strings.HasPrefix(path, "/docker/") {
			if strings.HasPrefix(got, "docker ") || show.Cells(got) > maxCells {
				t.Errorf("%q is %q", path, got)
			}
		} else if got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
}

// A long path keeps its end, a long unit its begin.
func TestLong(t *testing.T) {
	long := strings.Repeat("x", 100)
	if got := Short("/" + long + "/job-17"); !strings.HasPrefix(got, "...") || !strings.HasSuffix(got, "/job-17") || show.Cells(got) != maxCells {
		t.Errorf("a path: %q", got)
	}
	for deep, cells := range map[string]int{strings.Repeat("/世", 4096): maxCells, strings.Repeat("/世", 4096) + "x": maxCells - 1} {
		if got := Short(deep); !strings.HasPrefix(got, "...") || !strings.HasSuffix(deep, got[3:]) || show.Cells(got) != cells {
			t.Errorf("a deep path: %q, %d cells, want %d", got, show.Cells(got), cells)
		}
	}
	if got := Short("/nginx-" + long + ".service"); !strings.HasPrefix(got, "nginx-xx") || show.Cells(got) != maxCells {
		t.Errorf("a unit: %q", got)
	}
}

// own are the words of short names that are not in the path.
var own = map[string]bool{"pod": true, "container": true, "docker": true, "podman": true, "containerd": true, "cri-o": true, "lxc": true, "machine": true, "of": true, "user": true, "conmon": true}

// FuzzCgroupName: a short name is fit to be shown and short, and every word of it is one of the
// table's or stands in the path.
func FuzzCgroupName(f *testing.F) {
	for _, c := range examples() {
		f.Add(c[0])
	}
	f.Add("/\x1b]0;x\a/\u202e.service")
	f.Add("/lxc/a b")
	f.Fuzz(func(t *testing.T, path string) {
		got := Short(path)
		if show.Clean(got) != got || show.Cells(got) > maxCells {
			t.Fatalf("%q is %q", path, got)
		}
		clean := show.Clean("/"+strings.Trim(path, "/")) + " " + show.Clean(unescape(path))
		for word := range strings.FieldsSeq(got) {
			word = strings.TrimSuffix(strings.TrimPrefix(word, "..."), ",")
			if word = strings.TrimRight(word, "."); !own[word] && !strings.Contains(clean, word) {
				t.Fatalf("%q is %q: %q is not in the path", path, got, word)
			}
		}
	})
}
