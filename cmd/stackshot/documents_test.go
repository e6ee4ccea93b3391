package main

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each file and folder of ours that a document names is there: "internal/bpf/record_*.h" from the
// top, "table.go" in any folder. A path that does not begin with a folder of ours is somebody
// else's, the kernel's for example.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	const root = "../.."
	var all []string
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != root {
			return cmp.Or(err, fs.SkipDir)
		}
		all = append(all, strings.TrimPrefix(file, root+"/"))
		return nil
	})
	docs, err2 := filepath.Glob(root + "/docs/*.md")
	docs2, err3 := filepath.Glob(root + "/*.md")
	if err := cmp.Or(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	named, source := regexp.MustCompile("`([\\w.*/-]+)`"), regexp.MustCompile(`\.(go|c|h)$`)
	checked := 0
	for _, doc := range append(docs, docs2...) {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			name := strings.TrimSuffix(m[1], "/")
			top, _, inFolder := strings.Cut(name, "/")
			if inFolder && !slices.Contains(all, top) || !inFolder && !source.MatchString(name) {
				continue
			}
			checked++
			if !slices.ContainsFunc(all, func(file string) bool {
				if !inFolder {
					file = path.Base(file)
				}
				is, _ := path.Match(name, file)
				return is
			}) {
				t.Errorf("%s: there is no %s", doc, name)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d names", checked)
	}
}
