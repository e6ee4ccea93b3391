// Package golden holds what a test wrote against a file that was read and found
// right. It is for tests only: importing it adds the flag -update, with which
// such files are written anew instead.
package golden

import (
	"flag"
	"os"
	"reflect"
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
// included. A field without one is named "TYPE.FIELD has no key".
func Keys(typ reflect.Type) (keys []string) {
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
