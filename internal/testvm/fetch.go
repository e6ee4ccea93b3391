package testvm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Fetch brings the tracks' kernels and their modules into the cache and writes its
// index. What is there already is kept; with update each track is resolved anew. A track
// that cannot be had is in the index with its reason; if it is required, that is an
// error too. Only one Fetch may run on a cache; guests may run from it meanwhile.
func Fetch(ctx context.Context, cache, mirror string, tracks []Track, update bool, log io.Writer) error {
	old, err := Kernels(cache)
	if err != nil {
		return err
	}
	if !update && complete(cache, old, tracks) {
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
		k, err := a.have(ctx, cache, t, update)
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
		now = append(now, k)
	}
	if err := writeIndex(cache, now); err != nil {
		return err
	}
	return errors.Join(missing, os.RemoveAll(filepath.Join(a.dir, "debs")))
}

// have is a track's kernel with its modules: the cache's, if update does not ask for
// another, completed if need be, or else one that is fetched.
func (a *apt) have(ctx context.Context, cache string, t Track, update bool) (Kernel, error) {
	k, err := FindKernel(cache, t.Arch, t.Name)
	if err != nil || update {
		return a.fetch(ctx, cache, t)
	}
	if k.hasModules() {
		return k, nil
	}
	if err := a.modules(ctx, &k); err != nil { // that build is no longer offered
		return a.fetch(ctx, cache, t)
	}
	return k, nil
}

// complete: every track has a kernel, or is known not to be had and not required.
func complete(cache string, known []Kernel, tracks []Track) bool {
	for _, t := range tracks {
		skipped := false
		for _, k := range known {
			skipped = skipped || k.Arch == t.Arch && k.Track == t.Name && k.Image == "" && !t.Required
		}
		if k, err := FindKernel(cache, t.Arch, t.Name); (err != nil || !k.hasModules()) && !skipped {
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

// fetch tries the candidates of a track, newest first, three at most: the index
// names packages that no suite offers any more.
func (a *apt) fetch(ctx context.Context, cache string, t Track) (Kernel, error) {
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
		version, verr := a.version(ctx, c.pkg, t.Arch)
		if errors.Is(verr, errNotOffered) {
			continue
		}
		k := Kernel{Arch: t.Arch, Track: t.Name, Release: c.release, Package: c.pkg, Version: version}
		if err = verr; err == nil {
			err = a.image(ctx, cache, &k)
		}
		if err == nil && !k.hasModules() {
			err = a.modules(ctx, &k)
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
		if version, err := a.version(ctx, base, k.Arch); err == nil {
			if err := a.extract(ctx, base, k.Arch, version, keep); err != nil {
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
