package main

import (
	"context"
	"os"
	"path/filepath"

	"stackshot/internal/testvm"
)

// kernels fetches what the cache lacks.
func kernels(ctx context.Context, args []string) (int, error) {
	fl := newFlags("vmtest kernels")
	update := fl.Bool("update", false, "take the newest builds, not those of .ci/seals, and look for what could not be had before")
	mirror := fl.String("mirror", "http://deb.debian.org", "Debian `mirror`, with debian and debian-security below it")
	fl.Parse(args)
	cache, err := testvm.CacheDir()
	if err != nil {
		return 2, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return 2, err
	}
	var seals *testvm.Seals
	if !*update {
		repo, err := testvm.Repo(".")
		if err != nil {
			return 2, err
		}
		if seals, err = testvm.ReadSeals(filepath.Join(repo, testvm.SealsFile)); err != nil {
			return 2, err
		}
	}
	return 0, testvm.Fetch(ctx, cache, *mirror, testvm.Tracks, seals, os.Stdout)
}
