package report

import "testing"

func TestStalls(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"cpu some avg10=0.00 avg60=3.00 avg300=9.00 total=1": "",
		"cpu some avg10=58.94 avg60=43.49 avg300=26.92 total=585420992\nio some avg10=3.10 avg60=0 avg300=0 total=1\nio full avg10=1.00 avg60=0 avg300=0 total=1": "cpu 58.94%; io 3.10% (all at once 1.00%)",
		"memory full avg10=7.00 avg60=0 avg300=0 total=1": "memory 7.00%",
		"memory full":               "",
		"io some avg10=\x1b[1m x y": "io \\x1b[1m%",
	} {
		if got := stalls(text); got != want {
			t.Errorf("stalls(%q) = %q, want %q", text, got, want)
		}
	}
}
