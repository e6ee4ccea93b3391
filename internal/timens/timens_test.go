package timens

import "testing"

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text      string
		mono, boo int64
		ok        bool
	}{
		{"", 0, 0, true},
		{"monotonic           0         0\nboottime            0         0\n", 0, 0, true},
		{"monotonic      100000         0\nboottime      -86400 999999999\n", 100_000_000_000_000, -86_399_000_000_001, true},
		{"boottime 1 2\nmonotonic -1 5\n", -999_999_995, 1_000_000_002, true},
		{"1 3 4\n7 5 6\n", 3_000_000_004, 5_000_000_006, true},
		{"monotonic 1\n", 0, 0, false},
		{"monotonic a 0\n", 0, 0, false},
		{"\n", 0, 0, false},
	} {
		mono, boo, err := parse(c.text)
		if mono != c.mono || boo != c.boo || (err == nil) != c.ok {
			t.Errorf("%q: %d, %d, %v", c.text, mono, boo, err)
		}
	}
}
