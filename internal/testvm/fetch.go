package testvm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Fetch brings the tracks' kernels and their modules into the cache and writes its
// index: of each track the one that seals name, if the archive still has it, else the one that the cache
// has, else the newest. With no seals it is the newest. A track
// that cannot be had is in the index with its reason; if it is required, that is an
// error too. Only one Fetch may run on a cache; guests may run from it meanwhile.
func Fetch(ctx context.Context, cache, mirror string, tracks []Track, seals *Seals, log io.Writer) error {
	old, err := Kernels(cache)
	if err != nil {
		return err
	}
	if seals != nil && complete(cache, old, tracks, seals) {
		return nil
	}
	a, err := newApt(filepath.Join(cache, "apt"), mirror)
	if err != nil {
		return err
	}
	fmt.Fprintln(log, "apt-get update, in", a.dir)
	if _, err := a.run(ctx, "apt-get", "-q", "update"); err != nil {
		return err
	}
	var now []Kernel
	var missing error
	for _, t := range tracks {
		k, err := a.have(ctx, cache, t, seals, log)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			k = Kernel{Arch: t.Arch, Track: t.Name, Skipped: strings.Join(strings.Fields(err.Error()), " ")}
			if t.Required {
				missing = errors.Join(missing, fmt.Errorf("%w: %s %s, which is required: %w", ErrNoKernel, t.Arch, t.Name, err))
			}
		}
		fmt.Fprintln(log, indexLine(&k))
		if was, ok := seals.Kernel(t.Arch, t.Name); ok && k.SHA256 != was.SHA256 {
			fmt.Fprintf(log, "new kernel: %s %s %s, before %s\n", t.Arch, t.Name, first(k.Version, "none"), was.Version)
		}
		now = append(now, k)
	}
	if err := writeIndex(cache, now); err != nil {
		return err
	}
	return errors.Join(missing, os.RemoveAll(filepath.Join(a.dir, "debs")))
}

// have is a track's kernel with its modules: the sealed one, or else the cache's, completed if need
// be, or else the newest. Without seals it is the newest.
func (a *apt) have(ctx context.Context, cache string, t Track, seals *Seals, log io.Writer) (Kernel, error) {
	if seals == nil {
		return a.newest(ctx, cache, t)
	}
	sealed, _ := seals.Kernel(t.Arch, t.Name)
	k, err := FindKernel(cache, t.Arch, t.Name)
	if sealed.SHA256 != "" && (err != nil || sealed.SHA256 != k.SHA256) {
		was, serr := a.sealed(ctx, cache, t, sealed)
		if serr == nil {
			return was, nil
		}
		fmt.Fprintf(log, "%s %s: not the sealed kernel: %v\n", t.Arch, t.Name, serr)
		if !errors.Is(serr, errNotOffered) { // and the cache's image may be half replaced
			return a.newest(ctx, cache, t)
		}
	}
	if err != nil {
		return a.newest(ctx, cache, t)
	}
	if k.hasModules() {
		return k, nil
	}
	if err := a.modules(ctx, &k); err != nil { // that build is no longer offered
		return a.newest(ctx, cache, t)
	}
	return k, nil
}

// complete: every track has its sealed kernel, or if none is sealed any, or is known not to be had
// and not required.
func complete(cache string, known []Kernel, tracks []Track, seals *Seals) bool {
	for _, t := range tracks {
		skipped := false
		for _, k := range known {
			skipped = skipped || k.Arch == t.Arch && k.Track == t.Name && k.Image == "" && !t.Required
		}
		k, err := FindKernel(cache, t.Arch, t.Name)
		was, sealed := seals.Kernel(t.Arch, t.Name)
		if (err != nil || !k.hasModules() || sealed && was.SHA256 != k.SHA256) && (!skipped || sealed) {
			return false
		}
	}
	return true
}

func writeIndex(cache string, all []Kernel) error {
	text := "# arch track release package version sha256 file; or: arch track - why not\n"
	for i := range all {
		text += indexLine(&all[i]) + "\n"
	}
	part := filepath.Join(cache, indexName+".part")
	if err := os.WriteFile(part, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(cache, indexName))
}

// sealed fetches the kernel that was sealed, if a suite still offers that build.
func (a *apt) sealed(ctx context.Context, cache string, t Track, was Kernel) (Kernel, error) {
	offered, err := a.versions(ctx, was.Package, t.Arch)
	if err != nil {
		return Kernel{}, err
	}
	if !slices.Contains(offered, was.Version) {
		return Kernel{}, fmt.Errorf("%s %s: %w", was.Package, was.Version, errNotOffered)
	}
	k := Kernel{Arch: t.Arch, Track: t.Name, Release: was.Release, Package: was.Package, Version: was.Version}
	if err := a.whole(ctx, cache, &k); err != nil {
		return Kernel{}, err
	}
	if k.SHA256 != was.SHA256 {
		return Kernel{}, fmt.Errorf("%s %s: another image than the sealed one", was.Package, was.Version)
	}
	return k, nil
}

// whole brings a kernel's image and modules.
func (a *apt) whole(ctx context.Context, cache string, k *Kernel) error {
	err := a.image(ctx, cache, k)
	if err == nil && !k.hasModules() {
		err = a.modules(ctx, k)
	}
	return err
}

// newest tries the candidates of a track, newest first, three at most: the index
// names packages that no suite offers any more.
func (a *apt) newest(ctx context.Context, cache string, t Track) (Kernel, error) {
	all, err := a.candidates(ctx, t.Arch)
	if err != nil {
		return Kernel{}, err
	}
	tried := 0
	err = fmt.Errorf("no package of it in any suite")
	for _, c := range all {
		if !c.of(t.Name) || tried == 3 {
			continue
		}
		offered, verr := a.versions(ctx, c.pkg, t.Arch)
		if errors.Is(verr, errNotOffered) {
			continue
		}
		k := Kernel{Arch: t.Arch, Track: t.Name, Release: c.release, Package: c.pkg}
		if err = verr; err == nil {
			k.Version = offered[0]
			err = a.whole(ctx, cache, &k)
		}
		if err == nil {
			return k, nil
		}
		tried++
	}
	return Kernel{}, err
}

// image downloads a kernel's package and takes image and configuration out.
func (a *apt) image(ctx context.Context, cache string, k *Kernel) error {
	image := filepath.Join(cache, "vmlinuz-"+k.Release)
	config := filepath.Join(cache, "config-"+k.Release)
	keep := func(name string) string {
		switch {
		case name == "vmlinuz" || strings.HasPrefix(name, "vmlinuz-") || strings.HasPrefix(name, "vmlinuz."):
			return image
		case name == "config" || strings.HasPrefix(name, "config-"):
			return config
		}
		return ""
	}
	if err := a.extract(ctx, k.Package, k.Arch, k.Version, keep); err != nil {
		return err
	}
	if _, err := os.Stat(config); err != nil {
		// A split package has it beside the image. Without it a guest boots all the same.
		base := "linux-base-" + k.Release
		if offered, err := a.versions(ctx, base, k.Arch); err == nil {
			if err := a.extract(ctx, base, k.Arch, offered[0], keep); err != nil {
				return err
			}
		}
	}
	sum, err := sha256Of(image)
	if err != nil {
		return fmt.Errorf("%s holds no kernel image: %w", k.Package, err)
	}
	k.Image, k.SHA256 = image, sum
	return nil
}

func (a *apt) extract(ctx context.Context, pkg, arch, version string, keep func(string) string) error {
	deb, err := a.download(ctx, pkg, arch, version)
	if err != nil {
		return err
	}
	_, err = unpack(ctx, deb, keep)
	return err
}

func sha256Of(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
