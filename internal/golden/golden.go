// Package golden holds what a test wrote against a file that was read and found
// right. It is for tests only: importing it adds the flag -update, with which
// such files are written anew instead.
package golden

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files and generated documents anew")

// Want fails the test unless the file at path holds got; with -update it makes
// that so.
func Want(t testing.TB, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

// Keys are the JSON keys that a value of a type can have, those of all below it
// included. A field without one is named "TYPE.FIELD has no key". A type that writes its
// own JSON has its keys in show.Object literals: ObjectKeys.
func Keys(typ reflect.Type) (keys []string) {
	if typ.Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil
	}
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return Keys(typ.Elem())
	case reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			if !f.IsExported() && !f.Anonymous {
				continue // encoding/json does not see it
			}
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				keys = append(keys, name)
			} else if !f.Anonymous {
				keys = append(keys, typ.Name()+"."+f.Name+" has no key")
			}
			keys = append(keys, Keys(f.Type)...)
		}
	}
	return keys
}

var objectKey = regexp.MustCompile(`\{"([a-z_]+)", `)

// ObjectKeys are the JSON keys in the show.Object literals of Go files, tests apart.
func ObjectKeys(t testing.TB, patterns ...string) (keys []string) {
	t.Helper()
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range objectKey.FindAllSubmatch(source, -1) {
				keys = append(keys, string(m[1]))
			}
		}
	}
	return keys
}

// Documented fails the test unless each of at least so many words stands in backquotes on a page.
func Documented(t testing.TB, page string, least int, words []string) {
	t.Helper()
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range words {
		if !strings.Contains(string(doc), "`"+w+"`") {
			t.Errorf("%s does not mention `%s`", page, w)
		}
	}
	if len(words) < least {
		t.Errorf("only %d words found", len(words))
	}
}
