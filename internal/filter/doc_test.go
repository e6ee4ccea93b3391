package filter

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// docs/filter.md has every field with its operators and every state, and its examples can be
// read.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/filter.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|.*\\| ([^|]*) \\|$").FindAllStringSubmatch(page, -1) {
		rows[m[1]] = m[2]
	}
	for _, f := range fields {
		ops := rows[f.name]
		if as, ok := strings.CutPrefix(ops, "as `"); ok {
			ops = rows[strings.TrimSuffix(as, "`")]
		}
		if want := strings.Trim(strings.ReplaceAll("`"+oneOf(f.kind.ops)+"`", " ", "` `"), " "); ops != strings.ReplaceAll(want, "`or` ", "") {
			t.Errorf("%s: %q, the package has %s", f.name, ops, want)
		}
	}
	for _, s := range States() {
		if !strings.Contains(page, "`"+s+"`") {
			t.Errorf("no state %s", s)
		}
	}
	examples := append(regexp.MustCompile(`--where '(.*?)' `).FindAllStringSubmatch(page, -1), regexp.MustCompile("`([a-z]+[=~^<>][^`]+)`").FindAllStringSubmatch(page, -1)...)
	if len(examples) < 15 {
		t.Errorf("only %d examples", len(examples))
	}
	for _, m := range examples {
		if _, err := Parse(m[1]); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
}
