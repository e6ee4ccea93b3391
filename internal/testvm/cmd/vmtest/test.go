package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stackshot/internal/testvm"
)

// test runs one package in one guest.
func test(ctx context.Context, args []string) (int, error) {
	fl := newFlags("vmtest")
	kernel := fl.String("kernel", "newest", "`track` or release of the cache, or the path of an image")
	arch := fl.String("arch", "amd64", "`architecture`: amd64, arm64")
	cpus := fl.Int("smp", 2, "number of `CPUs`, where the layout does not say")
	layout := fl.String("layout", "", "`name` of the machine's layout: "+layouts())
	limit := fl.Duration("limit", 10*time.Minute, "end the guest after this `time`")
	factor := fl.Int("factor", 0, "STACKSHOT_TIME_FACTOR in the guest, a `number`; 0: by the CPUs of guest and host")
	appended := fl.String("append", "", "more `words` for the kernel's command line")
	out := fl.String("out", "", "`folder` for the files that the test left in /out")
	fl.Parse(args)
	if fl.NArg() == 0 {
		fl.Usage()
		return 2, fmt.Errorf("no package")
	}
	t := testvm.Test{Package: packageOf(fl.Arg(0)), Args: fl.Args()[1:], Factor: *factor, Output: os.Stdout, OutDir: *out}
	t.Guest = testvm.Config{CPUs: *cpus, Append: *appended, Limit: *limit}
	r, err := inGuest(ctx, &t, *kernel, *arch, *layout)
	if err != nil {
		return 2, err
	}
	fmt.Println("vmtest:", r)
	if err := testvm.NoteRed(r.Red(t.Guest.Kernel, t.Package)...); err != nil {
		return 2, err
	}
	switch {
	case r.Verdict == testvm.Passed:
		return 0, nil
	case r.Code > 0:
		return r.Code, nil
	}
	return 1, nil
}

// inGuest finds kernel and layout and runs the test.
func inGuest(ctx context.Context, t *testvm.Test, kernel, arch, layout string) (*testvm.Result, error) {
	cache, err := testvm.CacheDir()
	if err != nil {
		return nil, err
	}
	if t.Guest.Kernel, err = testvm.FindKernel(cache, arch, kernel); err != nil {
		return nil, err
	}
	if t.Guest.Layout, err = testvm.LayoutNamed(layout, arch); err != nil {
		return nil, err
	}
	b, done, err := newBuilder()
	if err != nil {
		return nil, err
	}
	defer done()
	t.Guest.LogDir = logDir(b.Repo, kernel, arch, layout)
	return testvm.Run(ctx, b, *t)
}

// newBuilder works on the repository that this runs in, in a folder that done removes.
func newBuilder() (b *testvm.Builder, done func(), err error) {
	repo, err := testvm.Repo(".")
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "vmtest-")
	if err != nil {
		return nil, nil, err
	}
	return &testvm.Builder{Repo: repo, Dir: dir}, func() { os.RemoveAll(dir) }, nil
}

// logDir is a new folder's name under the repository's .testvm, which git ignores.
func logDir(repo string, what ...string) string {
	name := time.Now().Format("20060102-150405.000")
	for _, w := range what {
		if w != "" {
			name += "-" + strings.ReplaceAll(w, "/", "_")
		}
	}
	return filepath.Join(repo, ".testvm", name)
}

func layouts() string {
	var s []string
	for _, l := range testvm.Layouts {
		s = append(s, l.Name+" ("+l.What+")")
	}
	return strings.Join(s, ", ")
}
