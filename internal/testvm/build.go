package testvm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"stackshot/internal/testvm/wire"
)

// Repo is the folder of go.mod, at or above dir.
func Repo(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("no go.mod at or above %s", dir)
		}
	}
}

// Builder makes the programs of guests, each once. It is for one goroutine.
type Builder struct {
	Repo string
	Dir  string // where the programs go; the caller removes it
	Tags string // go build -tags
}

// commandPackage is the one whose tests build the stackshot command.
const commandPackage = "cmd/stackshot"

// TestBinary builds a package's tests for an architecture, static.
func (b *Builder) TestBinary(ctx context.Context, pkg, arch string) (string, error) {
	return b.build(ctx, arch, pkg, ".test", "test", "-c")
}

// Program builds a command of the repository for an architecture, static.
func (b *Builder) Program(ctx context.Context, pkg, arch string) (string, error) {
	return b.build(ctx, arch, pkg, "", "build", "-trimpath", "-ldflags=-s -w")
}

func (b *Builder) build(ctx context.Context, arch, pkg, suffix string, args ...string) (string, error) {
	out := filepath.Join(b.Dir, arch, filepath.Base(pkg)+suffix)
	if strings.Contains(pkg, "/") {
		out = filepath.Join(b.Dir, arch, strings.ReplaceAll(pkg, "/", "-")+suffix)
	}
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	args = append(args, "-o", out)
	if b.Tags != "" {
		args = append(args, "-tags", b.Tags)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...)
	cmd.Dir = b.Repo
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	if _, err := os.Stat(out); errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s has no tests", pkg)
	}
	return out, nil
}

// image is the initramfs of one run: the first process, the program, and every
// file of the repository where the program expects it.
type image struct {
	job     *wire.Job
	init    string            // path of the built vminit
	repo    string            // empty: without the repository's files
	program string            // path; in the guest it is job.Args[0]
	more    map[string]string // name in the guest: path here
}

// applets are the names that vminit answers to besides init.
var applets = []string{"sleep", "true", "go"}

// write makes the archive.
func (m *image) write(ctx context.Context, to string) (err error) {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	a := newArchive(f)
	for _, d := range []string{"dev", "proc", "sys", "tmp", "run", "bin", "etc", "root"} {
		a.dir(d)
	}
	// Until devtmpfs is mounted the kernel needs these two.
	a.device("dev/console", 0o600, 5, 1)
	a.device("dev/null", 0o666, 1, 3)
	job, err := json.Marshal(m.job)
	if err != nil {
		return err
	}
	a.file(wire.JobFile[1:], 0o644, job)
	files := map[string]string{"init": m.init, m.job.Args[0][1:]: m.program}
	for name, path := range m.more {
		files[name] = path
	}
	for name, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		a.file(name, 0o755, data)
	}
	for _, name := range applets {
		a.link("bin/"+name, "/init")
	}
	if err := m.addRepo(ctx, a); err != nil {
		return err
	}
	return a.close()
}

// addRepo packs what git would: tests read sources, documents and fixtures by
// relative paths, and the whole is smaller than one test binary.
func (m *image) addRepo(ctx context.Context, a *archive) error {
	if m.repo == "" {
		return nil
	}
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = m.repo
	list, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("git ls-files in %s: %w", m.repo, err)
	}
	names := strings.Split(string(bytes.TrimRight(list, "\x00")), "\x00")
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		data, err := os.ReadFile(filepath.Join(m.repo, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed and not yet committed
		}
		if err != nil {
			return err
		}
		a.file(filepath.Join(wire.RepoDir[1:], name), 0o644, data)
	}
	return nil
}
