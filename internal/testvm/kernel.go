package testvm

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNoKernel is a kernel that is not in the cache.
var ErrNoKernel = errors.New("kernel not in the cache")

// Kernel is one kernel image to boot.
type Kernel struct {
	Arch, Track string // what was asked for: amd64, 6.12
	Release     string // what it calls itself: 6.12.117+deb13-cloud-amd64
	Package     string
	Version     string // of the package
	SHA256      string // of the image
	Image       string // path; empty if it could not be had
	Skipped     string // why, then
}

// Track is a line of kernels to test on: the newest build of a version, or of all.
type Track struct {
	Arch, Name string
	Required   bool // one that cannot be had is an error, not a skip
	Sealed     bool // make vm has guests of it, and says so in .ci/seals
}

// newest is the track of the highest version.
const newest = "newest"

// Tracks are all that the matrix knows.
var Tracks = []Track{
	{"amd64", "6.1", true, true},
	{"amd64", "6.12", true, true},
	{"amd64", "6.18", false, false},
	{"amd64", newest, true, true},
	{"arm64", "6.12", false, true},
	{"arm64", "6.18", false, false},
}

// CacheDir is where kernels are kept: $STACKSHOT_VM_CACHE, or stackshot-testvm
// in the user's cache folder.
func CacheDir() (string, error) {
	if dir := os.Getenv("STACKSHOT_VM_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w; set STACKSHOT_VM_CACHE", err)
	}
	return filepath.Join(dir, "stackshot-testvm"), nil
}

// indexName is the cache's list of what it holds: a line a kernel, fields
// separated by blanks, as indexLine writes them.
const indexName = "kernels.txt"

func indexLine(k *Kernel) string {
	if k.Image == "" {
		return strings.Join([]string{k.Arch, k.Track, "-", k.Skipped}, " ")
	}
	return strings.Join([]string{k.Arch, k.Track, k.Release, k.Package, k.Version, k.SHA256, filepath.Base(k.Image)}, " ")
}

// Kernels reads the cache's index; a cache that does not exist is empty.
func Kernels(cache string) ([]Kernel, error) {
	f, err := os.Open(filepath.Join(cache, indexName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []Kernel
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		w := strings.Fields(sc.Text())
		switch {
		case len(w) == 0 || w[0][0] == '#':
		case len(w) > 3 && w[2] == "-":
			all = append(all, Kernel{Arch: w[0], Track: w[1], Skipped: strings.Join(w[3:], " ")})
		case len(w) == 7:
			all = append(all, Kernel{w[0], w[1], w[2], w[3], w[4], w[5], filepath.Join(cache, filepath.Base(w[6])), ""})
		default:
			return nil, fmt.Errorf("%s:%d: %d fields, want 7", f.Name(), n, len(w))
		}
	}
	return all, sc.Err()
}

// FindKernel looks one up by its track or its release. A name with a slash is
// the path of an image.
func FindKernel(cache, arch, name string) (Kernel, error) {
	if strings.Contains(name, "/") {
		_, err := os.Stat(name)
		return Kernel{Arch: arch, Track: name, Release: filepath.Base(name), Image: name}, err
	}
	all, err := Kernels(cache)
	if err != nil {
		return Kernel{}, err
	}
	i := slices.IndexFunc(all, func(k Kernel) bool { return k.Arch == arch && (k.Track == name || k.Release == name) })
	switch {
	case i < 0:
		return Kernel{}, fmt.Errorf("%w: %s %s in %s (vmtest kernels fetches)", ErrNoKernel, arch, name, cache)
	case all[i].Image == "":
		return Kernel{}, fmt.Errorf("%w: %s %s: %s", ErrNoKernel, arch, name, all[i].Skipped)
	}
	if _, err := os.Stat(all[i].Image); err != nil {
		return Kernel{}, fmt.Errorf("%w: %s %s: %w", ErrNoKernel, arch, name, err)
	}
	return all[i], nil
}
