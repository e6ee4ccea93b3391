package testvm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// save writes the table as LoadTables reads it.
func (t *Table) save(path string) error {
	if path == "" {
		return nil
	}
	t.Date = time.Now().UTC().Format(time.DateOnly)
	text, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// LoadTables reads tables that Matrix saved and merges them: of two cells for
// one test on one machine the later file's counts.
func LoadTables(paths []string) (*Table, error) {
	all := newTable()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		t := newTable()
		if err := json.Unmarshal(text, t); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all.merge(t)
	}
	return all, nil
}

func (t *Table) merge(other *Table) {
	at := make([]int, len(other.Columns))
	for i, name := range other.Columns {
		if at[i] = slices.Index(t.Columns, name); at[i] < 0 {
			at[i] = len(t.Columns)
			t.Columns = append(t.Columns, name)
		}
		if why, ok := other.Absent[i]; ok {
			t.Absent[at[i]] = why
		} else {
			delete(t.Absent, at[i])
		}
		if d := other.Doctors[i]; d != nil {
			t.Doctors[at[i]] = d
		}
	}
	for _, r := range other.Rows {
		for i, c := range r.Cells {
			t.row(r.Package, r.Test).Cells[at[i]] = c
		}
	}
	for program, counts := range other.Verified {
		for i, n := range counts {
			t.count(at[i], map[string]int{program: n})
		}
	}
	t.Guests = append(t.Guests, other.Guests...)
	t.Date = max(t.Date, other.Date)
}

// ReplacePart exchanges what stands between a document's marks of a generated part.
func ReplacePart(doc, name, text string) error {
	old, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	begin, end := "<!-- generated: "+name+" -->\n", "<!-- end of "+name+" -->\n"
	head, rest, ok1 := strings.Cut(string(old), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has no part %q", doc, name)
	}
	return os.WriteFile(doc, []byte(head+begin+"\n"+text+"\n"+end+tail), 0o644)
}
