package golden

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

// Showable fails the test unless b may be sent to any terminal.
func Showable(tb testing.TB, b []byte) {
	tb.Helper()
	if !utf8.Valid(b) {
		tb.Fatal("output is not UTF-8")
	}
	for _, r := range string(b) {
		if r != '\n' && !unicode.IsPrint(r) {
			tb.Fatalf("output holds %U:\n%q", r, b)
		}
	}
}
