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

// matrix runs packages on all machines, or on those of every change.
func matrix(ctx context.Context, args []string) (int, error) {
	fl := newFlags("vmtest matrix")
	quick := fl.Bool("quick", false, "only the machines of every change")
	limit := fl.Duration("limit", 15*time.Minute, "end a guest after this `time`; its other tests get another one")
	silence := fl.Duration("silence", 4*time.Minute, "a test that writes nothing for this `time` hangs")
	factor := fl.Int("factor", 0, "STACKSHOT_TIME_FACTOR in the guests, a `number`; 0: by the CPUs of guest and host")
	only := fl.String("only", "", "only columns whose title contains this `text`")
	run := fl.String("run", "", "only tests that match this `regexp`")
	narrow := fl.String("narrow", "", "on machines of other than 2 CPUs, and of a layout, only tests that match this `regexp`")
	save := fl.String("save", "", "`file` for the table, after each machine; vmtest table reads it")
	skip := fl.String("skip", "", "not the tests that match this `regexp`")
	fl.Parse(args)
	if fl.NArg() == 0 {
		return 2, fmt.Errorf("no package")
	}
	m := testvm.Matrix{Columns: testvm.All(), Factor: *factor, Limit: *limit, Silence: *silence, Progress: os.Stderr, Narrow: *narrow, Save: *save}
	if *quick {
		m.Columns = testvm.Quick
	}
	m.Columns = matching(m.Columns, *only)
	for _, p := range fl.Args() {
		m.Packages = append(m.Packages, packageOf(p))
	}
	if *run != "" {
		m.Args = append(m.Args, "-run", *run)
	}
	if *skip != "" {
		m.Args = append(m.Args, "-skip", *skip)
	}
	return fillMatrix(ctx, &m)
}

func fillMatrix(ctx context.Context, m *testvm.Matrix) (int, error) {
	b, done, err := newBuilder()
	if err != nil {
		return 2, err
	}
	defer done()
	if m.Cache, err = testvm.CacheDir(); err != nil {
		return 2, err
	}
	m.LogDir = logDir(b.Repo, "matrix")
	began := time.Now()
	table, err := m.Run(ctx, b)
	if err != nil {
		return 2, err
	}
	table.Markdown(os.Stdout)
	if err := testvm.NoteRed(table.Red(m.Columns)...); err != nil {
		return 2, err
	}
	if len(table.Rows) == 0 {
		return 2, fmt.Errorf("no test ran: %d machines, those not here: %v", len(m.Columns), table.Absent)
	}
	bad := table.Bad()
	fmt.Printf("\n%d tests, %d guests, %d bad, %.0f s; logs in %s\n", len(table.Rows), len(table.Guests), bad, time.Since(began).Seconds(), m.LogDir)
	if bad > 0 {
		return 1, nil
	}
	return 0, nil
}

func matching(all []testvm.Column, text string) []testvm.Column {
	var out []testvm.Column
	for _, c := range all {
		if strings.Contains(c.String(), text) {
			out = append(out, c)
		}
	}
	return out
}

// packageOf is a package's folder in the repository.
func packageOf(arg string) string { return strings.TrimPrefix(filepath.Clean(arg), "./") }
