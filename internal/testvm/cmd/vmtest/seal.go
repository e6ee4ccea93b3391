package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"stackshot/internal/testvm"
)

// seal writes .ci/seals after make vm. Its exit code is 1 if a failure wants a person's reason.
func seal(_ context.Context, args []string) (int, error) {
	fl := newFlags("vmtest seal")
	failed := fl.String("red", "", "`file` with the objects that were tested, and the tests that failed, as $STACKSHOT_VM_RED has them")
	fl.Parse(args)
	if _, err := os.Stat(*failed); err != nil {
		return 2, fmt.Errorf("-red: %w", err)
	}
	repo, err := testvm.Repo(".")
	if err != nil {
		return 2, err
	}
	file := filepath.Join(repo, testvm.SealsFile)
	was, err := testvm.ReadSeals(file)
	if err != nil {
		return 2, err
	}
	red, err := testvm.ReadSeals(*failed)
	if err != nil {
		return 2, err
	}
	if len(red.Objects) == 0 {
		return 2, fmt.Errorf("%s: it names no BPF object", *failed)
	}
	cache, err := testvm.CacheDir()
	if err != nil {
		return 2, err
	}
	kernels, err := testvm.Kernels(cache)
	if err != nil {
		return 2, err
	}
	if err := testvm.Booted(kernels); err != nil {
		return 2, err
	}
	now := was.Next(red.Objects, kernels, red.Red)
	if err := os.WriteFile(file, []byte(now.String()), 0o644); err != nil {
		return 2, err
	}
	for _, r := range now.Red {
		fmt.Println(r)
	}
	if n := len(now.Unexplained()); n > 0 {
		return 1, fmt.Errorf("%d tests failed in guests; a reason that is not the change's belongs into %s", n, testvm.SealsFile)
	}
	return 0, nil
}
