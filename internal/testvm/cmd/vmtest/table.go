package main

import (
	"context"
	"fmt"
	"os"

	"stackshot/internal/testvm"
)

// table writes what several matrix runs came to as one; of two verdicts on a
// test the later file's counts.
func table(_ context.Context, args []string) (int, error) {
	fl := newFlags("vmtest table")
	testing := fl.String("testing", "", "put the table between its marks in this `document`")
	support := fl.String("support", "", "put the kernels' table between its marks in this `document`")
	fl.Parse(args)
	if fl.NArg() == 0 {
		return 2, fmt.Errorf("no file")
	}
	t, err := testvm.LoadTables(fl.Args())
	if err != nil {
		return 2, err
	}
	if *testing == "" && *support == "" {
		t.Markdown(os.Stdout)
	}
	for _, part := range []struct {
		doc, name string
		text      string
	}{{*testing, "matrix", t.Summary()}, {*support, "kernels", t.Support()}} {
		if part.doc == "" {
			continue
		}
		if err := testvm.ReplacePart(part.doc, part.name, part.text); err != nil {
			return 2, err
		}
	}
	return 0, nil
}
