package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// spy is a test that is told of failures.
type spy struct {
	testing.TB
	failed string
}

func (s *spy) Helper()                           {}
func (s *spy) Errorf(format string, args ...any) { s.failed = fmt.Sprintf(format, args...) }

func TestWant(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for got, fails := range map[string]bool{"a\n": false, "b\n": true, "": true} {
		s := &spy{TB: t}
		if Want(s, path, []byte(got)); (s.failed != "") != fails {
			t.Errorf("%q: %q", got, s.failed)
		}
	}
	*update = true
	defer func() { *update = false }()
	Want(t, path, []byte("b\n"))
	if b, err := os.ReadFile(path); string(b) != "b\n" || !*update {
		t.Errorf("with -update: %q, %v", b, err)
	}
}

func TestKeys(t *testing.T) {
	type Base struct {
		A int `json:"a"`
	}
	type doc struct {
		Base
		B []*Base `json:"b,omitempty"`
		C string
	}
	want := []string{"a", "b", "a", "doc.C has no key"}
	if got := Keys(reflect.TypeFor[doc]()); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
