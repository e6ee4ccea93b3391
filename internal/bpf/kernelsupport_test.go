package bpf

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every change of the kernel that the code here cites by its commit stands in
// docs/kernel-support.md, where users look.
func TestCitedChangesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/kernel-support.md")
	if err != nil {
		t.Fatal(err)
	}
	cited := 0
	commit := regexp.MustCompile(`\b[0-9a-f]{12}\b`)
	for _, pattern := range []string{"*.h", "*.bpf.c", "iter.go", "load.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, name := range files {
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range commit.FindAllString(string(src), -1) {
				cited++
				if !strings.Contains(string(doc), c) {
					t.Errorf("%s cites %s, which is not in docs/kernel-support.md", name, c)
				}
			}
		}
	}
	if cited == 0 {
		t.Error("no commit is cited anywhere")
	}
}
