package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stackshot/internal/testheap"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// inEnvelopes is the file that the repository has, in each envelope.
func inEnvelopes(t *testing.T) (files map[kcdata.Envelope][]byte) {
	t.Helper()
	plain, _, err := kcdata.Unwrap(read(t, sample(t)), maxPlain)
	if err != nil {
		t.Fatal(err)
	}
	files = map[kcdata.Envelope][]byte{}
	for e := kcdata.EnvelopeNone; e <= kcdata.EnvelopeZstd; e++ {
		var b bytes.Buffer
		if err := kcdata.Compress(&b, plain, e); err != nil {
			t.Fatal(err)
		}
		files[e] = b.Bytes()
	}
	return files
}

// longer makes a file of what is given and a hole of 1000 MiB.
func longer(t *testing.T, dir string, content []byte) (name string) {
	t.Helper()
	name = filepath.Join(dir, "longer.kcdata")
	write(t, name, content)
	if err := os.Truncate(name, 1000<<20); err != nil {
		t.Fatal(err)
	}
	return name
}

// said is what commands say of such a file.
func said(content []byte) string {
	return fmt.Sprintf("%d bytes behind its end, from offset %#x, are not read", 1000<<20-len(content), len(content))
}

// What follows a file's end takes no memory, and counts for nothing that its size allows.
func TestWhatFollowsTheEndIsNotRead(t *testing.T) {
	for e, content := range inEnvelopes(t) {
		name := longer(t, t.TempDir(), content)
		testheap.Bound(t, 96<<20, e.String(), func() {
			c, err := readFile(name)
			if err != nil || c.cut != nil || c.Follows != said(content) || c.Size != int64(len(content)) {
				t.Fatalf("%v: %v, %+v", e, err, c)
			}
			if s, err := c.snapshot(); err != nil || s.Problems[len(s.Problems)-1] != c.Follows {
				t.Errorf("%v: %v, problems %q", e, err, s.Problems)
			}
		})
		cut := longer(t, t.TempDir(), content[:len(content)-16]) // the end marker is not there, or not all of the stream
		testheap.Bound(t, 96<<20, e.String()+", cut", func() {
			if c, err := readFile(cut); err == nil && c.cut == nil {
				t.Errorf("%v without its end: %+v", e, c.File)
			}
		})
	}
}

// Commands show the file, and say once what follows it, from a file and from a pipe without end.
func TestCommandsSayWhatFollows(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	for e, content := range inEnvelopes(t) {
		dir := t.TempDir()
		name := longer(t, dir, content)
		for _, args := range [][]string{{"report", "--format", "folded"}, {"hang", "--format", "dot"}, {"dump"}, {"latency"}, {"symbolize", "-o", "-"}} {
			piped := func(in io.Reader) outcome {
				return invocation{bend: func(c *exec.Cmd) { c.Stdin = in }}.run(t, append(args, "-")...)
			}
			alone, file := piped(bytes.NewReader(content)), stackshot(t, append(args, name)...)
			pipe := piped(io.MultiReader(bytes.NewReader(content), zeros{}))
			for where, o := range map[string]outcome{name: file, "-": pipe} {
				what := said(content)
				if where == "-" {
					what = fmt.Sprintf("bytes behind its end, from offset %#x, are not read", len(content))
				}
				if line := "stackshot: " + where + ": " + what + "\n"; strings.Count(o.stderr, line) != 1 || o.code != alone.code {
					t.Errorf("%v: %q of %s: exit code %d, want %d, %q", e, args, where, o.code, alone.code, o.stderr)
				}
				o.stdout = strings.ReplaceAll(o.stdout, name, "-")
				if args[0] == "latency" {
					o.stdout = strings.Replace(o.stdout, "!! 1 problem with the file: stackshot report says more\n", "", 1)
				}
				if o.stdout != alone.stdout {
					t.Errorf("%v: %q of %s: other output: %.300q, want %.300q", e, args, where, o.stdout, alone.stdout)
				}
			}
		}
		newest := stackshot(t, "report", "--newest", dir)
		newest.want(t, exitWhole, said(content))
		if !strings.Contains(strings.Join(strings.Fields(newest.stdout), " "), "the file: "+said(content)) {
			t.Errorf("%v: the report does not say what follows: %.3000s", e, newest.stdout)
		}
		text, doc := stackshot(t, "list", dir), stackshot(t, "list", "--format", "json", dir)
		var list struct {
			Files []struct{ Follows, Error string }
		}
		if err := json.Unmarshal([]byte(doc.stdout), &list); err != nil || len(list.Files) != 1 || list.Files[0].Follows != said(content) || list.Files[0].Error != "" {
			t.Errorf("%v: %v, %s", e, err, doc.stdout)
		}
		if !strings.Contains(strings.Join(strings.Fields(text.stdout), " "), said(content)) || text.code != exitWhole || text.stderr != "" {
			t.Errorf("%v: %+v", e, text)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Symbolize does not write what follows the end, and replaces no file that would lose it.
func TestSymbolizeWhatFollows(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	name := put(t, ownFile(t, here(), ""), kcdata.EnvelopeZstd)
	alone, out := read(t, name), filepath.Join(t.TempDir(), "out")
	two := append(bytes.Clone(alone), alone...)
	write(t, name, two)
	o := stackshot(t, "symbolize", name)
	o.want(t, exitFailed, name, fmt.Sprintf("%d bytes behind its end", len(alone)), "--output")
	if !bytes.Equal(read(t, name), two) || strings.Count(o.stderr, "\n") != 1 {
		t.Errorf("the file was written, or %q", o.stderr)
	}
	stackshot(t, "symbolize", "-o", out, name).want(t, exitWhole, name, fmt.Sprintf("%d bytes behind its end", len(alone)))
	write(t, name, alone)
	stackshot(t, "symbolize", name).want(t, exitWhole)
	if !bytes.Equal(read(t, out), read(t, name)) {
		t.Error("with bytes behind its end the file became another")
	}
}
