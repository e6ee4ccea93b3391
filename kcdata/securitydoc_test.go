package kcdata_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"stackshot/internal/testread"
	. "stackshot/kcdata" // the package under test, which its test helpers import
)

// Nothing enters the file without a word on whether it may be a secret.
func TestSecurityDocListsEveryRecord(t *testing.T) {
	doc, err := os.ReadFile(securityDoc)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{} // id → what the row says of secrecy
	row := regexp.MustCompile("(?m)^\\| `(0x[0-9A-Fa-f]+)` `([A-Z0-9_]+)` \\|[^|]*\\| *(secret|not secret|may tell) *\\|")
	for _, m := range row.FindAllStringSubmatch(string(doc), -1) {
		if rows[m[1]+m[2]] != "" {
			t.Errorf("%s %s is listed twice", m[1], m[2])
		}
		rows[m[1]+m[2]] = m[3]
	}
	types := linuxTypes()
	for _, p := range testread.Layout { // every file that a test makes is held against it
		if p.Desc == "" && p.Type != TypeDefinition && p.Type != TypeThread && !slices.Contains(types, p.Type) {
			types = append(types, p.Type)
		}
	}
	for _, typ := range types {
		spec, _ := Lookup(typ)
		if rows[fmt.Sprintf("%#x", uint32(typ))+spec.Name] == "" && rows[fmt.Sprintf("0x%X", uint32(typ))+spec.Name] == "" {
			t.Errorf("%s has no row for 0x%X %s", securityDoc, uint32(typ), spec.Name)
		}
	}
	if len(rows) != len(types) {
		t.Errorf("%d rows in %s, %d types", len(rows), securityDoc, len(types))
	}
}
