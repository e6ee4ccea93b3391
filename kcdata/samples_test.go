package kcdata

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// samples reads the files that Apple's kernels wrote, by name without suffix.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "shared", "kcdata-samples", "*.kcdata"))
	if err != nil || len(paths) == 0 {
		t.Skip("no sample files beside this checkout")
	}
	out := make(map[string][]byte)
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(p, ".kcdata")] = b
	}
	return out
}

// decodeJSON keeps numbers as text: a float64 would hide the low bits of a u64.
func decodeJSON(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// The oracle: what Apple's own decoder printed for files of its own kernels.
func TestSamplesDecodeAsAppleSays(t *testing.T) {
	all := samples(t)
	if len(all) != 6 {
		t.Errorf("%d sample files, want 6", len(all))
	}
	for name, b := range all {
		t.Run(filepath.Base(name), func(t *testing.T) {
			tree, err := Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(decodeJSON(t, want), decodeJSON(t, got)); d != "" {
				t.Errorf("-apple +ours:\n%.4000s", d)
			}
		})
	}
}
