package testvm

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// apt is a package source of our own: its list of sources, its lists and its
// cache lie under dir, and nothing of the machine's is read but its keys and
// its proxy settings.
type apt struct {
	dir     string
	options []string
}

// suites is where the kernels of all tracks are: 6.1 in bookworm, 6.12 in
// trixie, later ones in its backports and in sid.
const suites = `deb MIRROR/debian bookworm main
deb MIRROR/debian-security bookworm-security main
deb MIRROR/debian trixie main
deb MIRROR/debian trixie-backports main
deb MIRROR/debian-security trixie-security main
deb MIRROR/debian sid main
`

func newApt(dir, mirror string) (*apt, error) {
	// What a run left that did not end may be cut short.
	if err := os.RemoveAll(filepath.Join(dir, "debs")); err != nil {
		return nil, err
	}
	for _, d := range []string{"lists/partial", "cache/archives/partial", "state", "debs"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	sources := strings.ReplaceAll(suites, "MIRROR", strings.TrimSuffix(mirror, "/"))
	if err := os.WriteFile(filepath.Join(dir, "sources.list"), []byte(sources), 0o644); err != nil {
		return nil, err
	}
	// Nothing is installed, so nothing depends on anything.
	if err := os.WriteFile(filepath.Join(dir, "state/status"), nil, 0o644); err != nil {
		return nil, err
	}
	a := &apt{dir: dir}
	for _, o := range []string{
		"Dir::Etc::sourcelist=" + dir + "/sources.list", "Dir::Etc::sourceparts=-",
		"Dir::State=" + dir + "/state", "Dir::State::status=" + dir + "/state/status",
		"Dir::State::lists=" + dir + "/lists", "Dir::Cache=" + dir + "/cache",
		"APT::Architecture=amd64", "APT::Architectures::=amd64", "APT::Architectures::=arm64",
		"Acquire::Languages=none", "APT::Sandbox::User=root", "Acquire::Retries=2",
		"Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
	} {
		a.options = append(a.options, "-o", o)
	}
	return a, nil
}

func (a *apt) run(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, append(slices.Clone(a.options), args...)...)
	cmd.Dir = filepath.Join(a.dir, "debs")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, bytes.TrimSpace(errs.Bytes()))
	}
	return out, nil
}

// candidate is a package that holds, by its name, a kernel image.
type candidate struct {
	pkg, release string
	signed       bool
	number       []int // the numbers of its release, for order
}

// candidates are all kernels for virtual machines of an architecture, newest
// first. Up to 6.18 the image is in linux-image-REL, from 6.19 on that one is
// empty and linux-binary-REL holds it; either may be there unsigned only.
func (a *apt) candidates(ctx context.Context, arch string) ([]candidate, error) {
	out, err := a.run(ctx, "apt-cache", "pkgnames", "linux-")
	if err != nil {
		return nil, err
	}
	var all []candidate
	for _, name := range strings.Fields(string(out)) {
		if c, ok := candidateOf(name, arch); ok {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(x, y candidate) int {
		if n := slices.Compare(y.number, x.number); n != 0 {
			return n
		}
		if x.signed != y.signed {
			if x.signed {
				return -1
			}
			return 1
		}
		return strings.Compare(y.pkg, x.pkg)
	})
	return all, nil
}

func candidateOf(name, arch string) (candidate, bool) {
	release, signed := strings.CutSuffix(name, "-unsigned")
	signed = !signed
	release, split := strings.CutPrefix(release, "linux-binary-")
	if split {
		if r, ok := strings.CutPrefix(release, "unsigned-"); ok {
			release, signed = r, false
		}
	} else if r, ok := strings.CutPrefix(release, "linux-image-"); ok {
		release = r
	} else {
		return candidate{}, false
	}
	version, ok := strings.CutSuffix(release, "-cloud-"+arch)
	c := candidate{pkg: name, release: release, signed: signed, number: numbers(version)}
	// linux-image-6.12-cloud-amd64 is a pointer to a release, not one.
	if !ok || len(c.number) < 3 || split != (slices.Compare(c.number[:2], []int{6, 19}) >= 0) {
		return candidate{}, false
	}
	return c, true
}

// numbers are the decimal numbers in s: 6.12.117+deb13 is 6 12 117 13.
func numbers(s string) []int {
	var all []int
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.Atoi(w)
		if err != nil {
			return nil
		}
		all = append(all, n)
	}
	return all
}

// of says whether the candidate belongs to a track.
func (c *candidate) of(track string) bool {
	want := numbers(track)
	return track == newest || len(c.number) >= len(want) && slices.Equal(c.number[:len(want)], want)
}

// errNotOffered is a package that others name and no source offers.
var errNotOffered = errors.New("not offered by any suite")

// versions are those that suites offer, the one that apt would install first.
func (a *apt) versions(ctx context.Context, pkg, arch string) ([]string, error) {
	out, err := a.run(ctx, "apt-cache", "madison", pkg+":"+arch)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, line := range strings.Split(string(out), "\n") {
		if w := strings.Fields(line); len(w) > 2 {
			all = append(all, w[2])
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: %w", pkg, errNotOffered)
	}
	return all, nil
}

// download fetches a package, once, and returns its file.
func (a *apt) download(ctx context.Context, pkg, arch, version string) (string, error) {
	// The file's name escapes the version's epoch; there is one such package.
	pattern := filepath.Join(a.dir, "debs", pkg+"_*_"+arch+".deb")
	if found, _ := filepath.Glob(pattern); len(found) == 1 {
		return found[0], nil
	}
	if _, err := a.run(ctx, "apt-get", "-q", "download", pkg+":"+arch+"="+version); err != nil {
		return "", err
	}
	found, _ := filepath.Glob(pattern)
	if len(found) != 1 {
		return "", fmt.Errorf("%s: %d files after the download", pkg, len(found))
	}
	return found[0], nil
}

// unpack hands every regular file of a package to keep, which returns where to
// write it, or "" to pass it over. It returns what was written.
func unpack(ctx context.Context, deb string, keep func(name string) string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var written []string
	for r := tar.NewReader(out); err == nil; {
		var h *tar.Header
		if h, err = r.Next(); err != nil {
			break
		}
		if to := keep(path.Base(h.Name)); to != "" && h.Typeflag == tar.TypeReg {
			err = writeFile(to, r)
			written = append(written, to)
		}
	}
	io.Copy(io.Discard, out) // or dpkg-deb dies of a closed pipe
	if werr := cmd.Wait(); err == io.EOF {
		err = werr
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", deb, err)
	}
	return written, nil
}

// writeFile replaces a file at once: a guest may be booting from it.
func writeFile(name string, r io.Reader) error {
	f, err := os.Create(name + ".part")
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	return errors.Join(f.Close(), os.Rename(f.Name(), name))
}
