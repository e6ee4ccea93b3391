package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(b)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// crashFile is a crash file with buffers in it.
func crashFile(t *testing.T, inner ...[]byte) []byte {
	t.Helper()
	n := 1 << 10
	for _, b := range inner {
		n += len(b) + 64
	}
	w := kcdata.NewWriter(make([]byte, n))
	errs := []error{w.Begin(kcdata.MagicCrashinfo)}
	for _, b := range inner {
		errs = append(errs, w.Bytes(kcdata.TypeNested, b))
	}
	if err := errors.Join(append(errs, w.End())...); err != nil {
		t.Fatal(err)
	}
	return w.Written()
}

// withoutProblems is a report in JSON, and the problems of its file.
func withoutProblems(t *testing.T, o outcome) (rest map[string]any, problems []any) {
	t.Helper()
	if err := json.Unmarshal([]byte(o.stdout), &rest); err != nil {
		t.Fatalf("%v, %s", err, o.stderr)
	}
	problems, _ = rest["problems"].([]any)
	delete(rest, "problems")
	delete(rest, "alarms") // which repeat them
	return rest, problems
}

// A file in gzip or base64 is read as it is without, by each command, also from standard input.
func TestFilesInCodings(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	packed := read(t, sample(t))
	dir := t.TempDir()
	for name, b := range map[string][]byte{"gz": gzipped(t, packed), "b64": []byte(base64.StdEncoding.EncodeToString(packed) + "\n")} {
		write(t, filepath.Join(dir, name), b)
	}
	for _, args := range [][]string{{"report"}, {"report", "--format", "json"}, {"hang"}, {"dump"}, {"latency"}} {
		args = append(args, sample(t))
		want := stackshot(t, args...)
		for _, name := range []string{"gz", "b64"} {
			name = filepath.Join(dir, name)
			args[len(args)-1] = name
			o := stackshot(t, args...)
			if o.code != want.code || strings.ReplaceAll(o.stdout, name, sample(t)) != want.stdout || o.stderr != "" {
				t.Errorf("%q: exit code %d, %s\n%.1000s", args, o.code, o.stderr, o.stdout)
			}
		}
	}
	list := stackshot(t, "list", dir)
	if list.want(t, exitWhole); strings.Count(list.stdout, "gz") != 1 || strings.Count(list.stdout, "b64") != 1 {
		t.Errorf("the list lacks one of the two:\n%s", list.stdout)
	}
}

// Symbolize keeps a file that is in a coding, and writes another one.
func TestSymbolizeInCodings(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	file := read(t, put(t, ownFile(t, here(), ""), kcdata.EnvelopeZlib))
	dir := t.TempDir()
	name, out := filepath.Join(dir, "gz"), filepath.Join(dir, "out")
	write(t, name, gzipped(t, file))
	for _, args := range [][]string{{}, {"-o", name}, {"-o", dir + "/./gz"}} {
		stackshot(t, append(append([]string{"symbolize"}, args...), name)...).want(t, exitFailed, name+": in gzip it cannot be replaced", "--output")
	}
	if !bytes.Equal(read(t, name), gzipped(t, file)) {
		t.Error("the file was written")
	}
	stackshot(t, "symbolize", "-o", out, name).want(t, exitWhole)
	if _, e, err := kcdata.Unwrap(read(t, out), maxPlain); err != nil || e != kcdata.EnvelopeZlib {
		t.Errorf("%v, %v", e, err)
	}
}

// The report of a crash file is that of the stackshot in it, and says so; without one it is refused.
func TestCrashFiles(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	plain, _, err := kcdata.Unwrap(read(t, sample(t)), maxPlain)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := func(name string, b []byte) string {
		name = filepath.Join(dir, name)
		write(t, name, b)
		return name
	}
	const says = "the stackshot is nested in CRASHINFO at offset 0x20"
	asJSON := []string{"report", "--format", "json", "--no-symbols"}
	want, _ := withoutProblems(t, stackshot(t, append(asJSON, sample(t))...))
	got, problems := withoutProblems(t, stackshot(t, append(asJSON, at("one", crashFile(t, plain)))...))
	if d := cmp.Diff(want, got); d != "" || len(problems) != 1 || problems[0] != says {
		t.Errorf("problems %q; alone, and in a crash file:\n%.2000s", problems, d)
	}
	damaged := gzipped(t, plain)
	damaged[len(damaged)-6] ^= 1 // of its checksum
	for _, c := range []struct {
		name string
		b    []byte
		code int
		says string
	}{
		{"two", crashFile(t, plain, plain), exitWhole, says + "\n!! the file: behind the nested stackshot 1 buffer is not read"},
		{"compressed", crashFile(t, read(t, put(t, plain, kcdata.EnvelopeZlib))), exitWhole, "the stackshot is nested in CRASHINFO, compressed, at offset 0x20"},
		{"damaged", damaged, exitIncomplete, "the file is damaged: kcdata: offset 0x0: in gzip: "},
		{"cut in it", crashFile(t, plain)[:len(plain)-100], exitIncomplete, says},
		{"cut behind it", crashFile(t, plain)[:len(plain)+40], exitIncomplete, says},
	} {
		name := at(c.name, c.b)
		o := stackshot(t, "report", name)
		if o.code != c.code || !strings.Contains(o.stdout, "!! the file: "+c.says) {
			t.Errorf("%s: exit code %d, %s\n%.1500s", c.name, o.code, o.stderr, o.stdout)
		}
		if c.code == exitIncomplete {
			o.want(t, c.code, name+": ", "kcdata: offset 0x")
		}
	}
	stackshot(t, "report", "--format", "folded", filepath.Join(dir, "two")).want(t, exitWhole, "behind the nested stackshot 1 buffer is not read", "problems with the file")
	list := stackshot(t, "list", dir)
	if list.want(t, exitIncomplete, "not to their end: 3"); strings.Count(list.stdout, "threads  stopped ") != 6 {
		t.Errorf("the list does not know a crash file:\n%s", list.stdout)
	}
	cut := at("cut before it", crashFile(t, crashFile(t), plain)[:70])
	stackshot(t, "report", cut).want(t, exitFailed, cut+": kcdata: offset 0x", ": truncated\n")
	none := at("none", crashFile(t, crashFile(t)))
	for _, args := range [][]string{{"report"}, {"hang"}, {"latency"}, {"report", "--format", "json"}} {
		o := stackshot(t, append(args, none)...)
		if o.want(t, exitFailed, none+": kcdata: offset 0x0: CRASHINFO, and none is nested in it: not a stackshot: 'stackshot dump "+none+"'"); strings.Count(o.stderr, "\n") != 1 || o.stdout != "" {
			t.Errorf("%q: %s", args, o.stderr)
		}
	}
	stackshot(t, "dump", none).want(t, exitWhole)
	stackshot(t, "symbolize", none).want(t, exitFailed, none+": ", "not a stackshot: 'stackshot dump ")
	one, out := filepath.Join(dir, "one"), filepath.Join(dir, "out")
	stackshot(t, "symbolize", one).want(t, exitFailed, one+": "+says+", and cannot be replaced", "--output")
	stackshot(t, "symbolize", "-o", out, one).want(t, exitWhole)
	again, _ := withoutProblems(t, stackshot(t, append(asJSON, out)...))
	if d := cmp.Diff(want["machine"], again["machine"]); d != "" || len(want["tasks"].([]any)) != len(again["tasks"].([]any)) {
		t.Errorf("symbolized out of a crash file:\n%s", d)
	}
}

// A delta is called one, in each form; one that breaks off does not say which tasks had no thread that ran.
func TestDeltas(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	w := kcdata.NewWriter(make([]byte, 1<<12))
	if err := errors.Join(w.Begin(kcdata.MagicDeltaStackshot), w.BeginContainer(kcdata.TypeTask, 7), w.Array(kcdata.TypeNonrunnableTids, 8, 2, make([]byte, 16)),
		w.EndContainer(7), w.End()); err != nil {
		t.Fatal(err)
	}
	name, cut := filepath.Join(t.TempDir(), "delta"), filepath.Join(t.TempDir(), "cut")
	write(t, name, w.Written())
	write(t, cut, w.Written()[:len(w.Written())-16])
	const lacks, none = "a delta stackshot lacks the threads that did not run since the one before it (2)", "no thread of it ran since the stackshot before"
	o := stackshot(t, "report", name)
	for _, want := range []string{"delta of unknown host: ", "!! the file: " + lacks, "\ndelta stackshot of unknown host", none} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("it does not say %q:\n%s", want, o.stdout)
		}
	}
	if o := stackshot(t, "report", cut); strings.Contains(o.stdout, none) || !strings.Contains(o.stdout, lacks) {
		t.Errorf("of one that breaks off:\n%s", o.stdout)
	}
	all, problems := withoutProblems(t, stackshot(t, "report", "--format", "json", name))
	if all["machine"].(map[string]any)["delta"] != true || len(problems) != 1 {
		t.Errorf("%v, %q", all["machine"], problems)
	}
	stackshot(t, "report", "--format", "folded", name).want(t, exitWhole, "1 problem with the file: 'stackshot report' says more")
}

// What is no KCData is named; a dump of a machine's memory with the command that reads it.
func TestFilesOfOthersAreNamed(t *testing.T) {
	testneed.Live(t)
	t.Parallel()
	dir := t.TempDir()
	ips, dump := filepath.Join(dir, "a.ips"), filepath.Join(dir, "vm core")
	write(t, ips, []byte(`{"bug_type":"288","os_version":"x"}`+"\n{}"))
	deadMachine(t, dump, 24, 3, 2)
	for name, want := range map[string]string{
		ips:        ips + ": kcdata: offset 0x0: a report of Apple's in JSON (.ips): not a kcdata buffer",
		dump:       dump + ": a dump of a machine's memory: 'stackshot extract '" + dump + "'' looks for a snapshot in it",
		os.Args[0]: ": an ELF file: not a kcdata buffer\n",
	} {
		for _, command := range []string{"report", "dump", "hang"} {
			o := stackshot(t, command, name)
			if o.want(t, exitFailed, want); strings.Count(o.stderr, "\n") != 1 || o.stdout != "" {
				t.Errorf("%s of %s: %s", command, name, o.stderr)
			}
		}
	}
}
