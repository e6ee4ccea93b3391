package kcdata

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The buffer in the package comment is what the writer writes.
func TestK1DocDump(t *testing.T) {
	src, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^//\t([0-9a-f]{4})  ((?:[0-9a-f]{2} ){16})`)
	var want []byte
	for _, m := range row.FindAllStringSubmatch(string(src), -1) {
		b, err := hex.DecodeString(strings.ReplaceAll(m[2], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, b...)
	}
	if len(want) != 0x70 {
		t.Fatalf("%#x bytes in the comment, want 0x70", len(want))
	}
	got := buffer(t, MagicStackshot, func(w ItemWriter) {
		ok(t, w.BeginContainer(TypeTask, 7))
		ok(t, w.Struct(TypeKernPageSize, uint32(4096)))
		ok(t, w.EndContainer(7))
	})
	if string(got) != string(want) {
		t.Errorf("written:\n%sin the comment:\n%s", hex.Dump(got), hex.Dump(want))
	}
}
