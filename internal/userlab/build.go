//go:build linux

package userlab

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

//go:embed testdata
var sources embed.FS

// buildTime is how long one compiler may take.
const buildTime = 2 * time.Minute

// A builder makes programs in a directory of its own, which goes with the test.
type builder struct {
	tb     testing.TB // nil: whoever has the builder looks at err
	dir    string
	gcc    string // instead of gcc; "": gcc
	static bool   // no shared libraries
	err    error  // the first
}

func newBuilder(tb testing.TB) *builder {
	tb.Helper()
	b := &builder{tb: tb, dir: tb.TempDir()}
	b.err = os.CopyFS(b.dir, sources)
	return b
}

// file is the path of a source, or of what is built from it.
func (b *builder) file(name string) string { return filepath.Join(b.dir, "testdata", name) }

// run executes a tool among the sources. After a failure it does nothing.
func (b *builder) run(tool string, args ...string) {
	if b.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	tool, args = b.compiler(tool, args)
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = b.file("")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.err = fmt.Errorf("userlab: %s %s: %w\n%s", tool, strings.Join(args, " "), err, out)
	}
}

// cc builds one source with gcc or its like: flags, then the source.
func (b *builder) cc(tool, source, flags string) string {
	out := b.out(tool, source, flags)
	if path := prebuilt(out); path != "" {
		return path
	}
	b.run(tool, append(strings.Fields(flags), "-o", out, source)...)
	return b.done(out)
}

// rust compiles a program of Rust.
func (b *builder) rust(source string) string {
	out := b.file(source + ".out")
	b.run("rustc", "-O", "-o", out, source)
	return b.done(out)
}

// out is where cc puts a program.
func (b *builder) out(tool, source, flags string) string {
	return b.file(source + "." + strings.Map(wordOnly, tool+flags))
}

func wordOnly(r rune) rune {
	if r == ' ' || r == '/' || r == '-' {
		return -1
	}
	return r
}

// done ends the test if anything went wrong.
func (b *builder) done(out string) string {
	if b.err != nil && b.tb != nil {
		b.tb.Fatal(b.err)
	}
	return out
}
