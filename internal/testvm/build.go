package testvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"stackshot/internal/userlab"
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

// labPackages are those whose tests start C programs.
var labPackages = []string{"snapshot", commandPackage, "internal/hanglab", "internal/userlab"}

// crossCompilers are by architecture; Debian's package is gcc-aarch64-linux-gnu.
var crossCompilers = map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"}

// lab builds what package userlab has for guests. Without a compiler for arch
// there is nothing, and the tests that want it fail and say so.
func (b *Builder) lab(arch string) ([]string, error) {
	gcc := crossCompilers[arch]
	if arch == runtime.GOARCH {
		gcc = "gcc"
	}
	dir := filepath.Join(b.Dir, arch, "lab")
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		if _, err := exec.LookPath(gcc); err != nil {
			return nil, nil
		}
		if err := userlab.Prebuild(dir, gcc); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	return filepath.Glob(filepath.Join(dir, "*"))
}

// TestBinary builds a package's tests for an architecture, static.
func (b *Builder) TestBinary(ctx context.Context, pkg, arch string) (string, error) {
	return b.build(ctx, arch, pkg, ".test", "test", "-c")
}

// Program builds a command of the repository for an architecture, static.
func (b *Builder) Program(ctx context.Context, pkg, arch string) (string, error) {
	return b.build(ctx, arch, pkg, "", "build", "-trimpath", "-ldflags=-s -w")
}

func (b *Builder) build(ctx context.Context, arch, pkg, suffix string, args ...string) (string, error) {
	out := filepath.Join(b.Dir, arch, strings.ReplaceAll(pkg, "/", "-")+suffix)
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
