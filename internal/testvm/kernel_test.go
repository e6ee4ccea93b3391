package testvm

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Only names that hold an image are candidates: which do changed with 6.19.
func TestCandidates(t *testing.T) {
	for name, want := range map[string]candidate{
		"linux-image-6.1.0-56-cloud-amd64":                {release: "6.1.0-56-cloud-amd64", signed: true, number: []int{6, 1, 0, 56}},
		"linux-image-6.12.117+deb13-cloud-amd64-unsigned": {release: "6.12.117+deb13-cloud-amd64", number: []int{6, 12, 117, 13}},
		"linux-binary-7.2.13+deb14-cloud-amd64":           {release: "7.2.13+deb14-cloud-amd64", signed: true, number: []int{7, 2, 13, 14}},
		"linux-binary-unsigned-7.3.4+deb13-cloud-amd64":   {release: "7.3.4+deb13-cloud-amd64", number: []int{7, 3, 4, 13}},
	} {
		got, ok := candidateOf(name, "amd64")
		want.pkg = name
		if !ok || got.release != want.release || got.signed != want.signed || !slices.Equal(got.number, want.number) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, ok, want)
		}
	}
	for _, name := range []string{
		"linux-image-7.2.13+deb14-cloud-amd64",  // a package of dependencies only
		"linux-image-6.12-cloud-amd64",          // a pointer to a release
		"linux-image-cloud-amd64", "linux-base", // likewise, and something else
		"linux-image-6.1.0-56-cloud-amd64-dbg",     // symbols
		"linux-image-6.1.0-56-amd64",               // not for virtual machines
		"linux-image-6.12.117+deb13-cloud-arm64",   // another architecture
		"linux-headers-6.12.117+deb13-cloud-amd64", // headers
	} {
		if c, ok := candidateOf(name, "amd64"); ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestTracksOfACandidate(t *testing.T) {
	c, _ := candidateOf("linux-image-6.12.117+deb13-cloud-amd64", "amd64")
	for track, want := range map[string]bool{"6.12": true, "6.1": false, "6.18": false, newest: true} {
		if got := c.of(track); got != want {
			t.Errorf("%s: %v", track, got)
		}
	}
}

// What the index says is read as it was written, and a kernel that was skipped
// or is gone is not found, with the reason.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	want := []Kernel{
		{Arch: "amd64", Track: "6.12", Release: "6.12.1-x", Package: "linux-image-6.12.1-x", Version: "6.12.1-1", SHA256: "00ff", Image: filepath.Join(dir, "vmlinuz-6.12.1-x")},
		{Arch: "amd64", Track: "6.18", Skipped: "no package of it in any suite"},
		{Arch: "arm64", Track: "6.12", Release: "6.12.1-y", Package: "p", Version: "1", SHA256: "0", Image: filepath.Join(dir, "gone")},
	}
	if err := writeIndex(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := Kernels(dir)
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%+v, %v\nwant %+v", got, err, want)
	}
	if err := os.WriteFile(want[0].Image, []byte("image"), 0o644); err != nil {
		t.Fatal(err)
	}
	if complete(dir, got, []Track{{"amd64", "6.12", true, true}}, &Seals{}) {
		t.Error("a cache without the kernel's modules is complete")
	}
	if err := os.MkdirAll(want[0].ModulesDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(want[0].ModulesDir(), builtinList), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"6.12", "6.12.1-x", want[0].Image} {
		if k, err := FindKernel(dir, "amd64", name); err != nil || k.Image != want[0].Image {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
	}
	for arch, track := range map[string]string{"amd64": "6.18", "arm64": "6.12", "": "6.12"} {
		if k, err := FindKernel(dir, arch, track); !errors.Is(err, ErrNoKernel) {
			t.Errorf("%s %s: %+v, %v", arch, track, k, err)
		}
	}
	if !complete(dir, got, []Track{{"amd64", "6.12", true, true}, {"amd64", "6.18", false, false}}, &Seals{}) {
		t.Error("a cache with all there is to have is not complete")
	}
	if complete(dir, got, []Track{{"amd64", "6.18", false, true}}, &Seals{Kernels: []Kernel{{Arch: "amd64", Track: "6.18", SHA256: "00"}}}) {
		t.Error("a cache that could not have a sealed kernel once is complete for ever")
	}
	for sum, whole := range map[string]bool{"00ff": true, "00fe": false} {
		sealed := &Seals{Kernels: []Kernel{{Arch: "amd64", Track: "6.12", SHA256: sum}}}
		if complete(dir, got, []Track{{"amd64", "6.12", true, true}}, sealed) != whole {
			t.Errorf("with 00ff in the cache and %s sealed: complete %v", sum, !whole)
		}
	}
	if complete(dir, got, []Track{{"amd64", "6.18", true, false}}, &Seals{}) || complete(dir, got, []Track{{"amd64", "6.1", false, false}}, &Seals{}) {
		t.Error("a cache without a required or an unknown kernel is complete")
	}
}
