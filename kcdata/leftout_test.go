package kcdata

import "testing"

func TestLeftOutReasons(t *testing.T) {
	seen := map[string]bool{}
	for code := uint32(LeftOutMaxPause); code <= LeftOutPanic; code++ {
		word := LeftOutReason(code)
		if word == "" || word == "unknown" || seen[word] {
			t.Errorf("reason %d is called %q", code, word)
		}
		seen[word] = true
	}
	for _, code := range []uint32{0, LeftOutPanic + 1, 1<<32 - 1} {
		if word := LeftOutReason(code); word != "unknown" {
			t.Errorf("reason %d is called %q", code, word)
		}
	}
}
