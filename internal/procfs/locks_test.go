package procfs

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
)

const locks618 = `1: FLOCK  ADVISORY  WRITE 812 fe:00:1234 0 EOF
1: -> FLOCK  ADVISORY  READ  900 fe:00:1234 0 EOF
1:  -> FLOCK  ADVISORY  WRITE 901 fe:00:1234 0 EOF
2: POSIX  ADVISORY  WRITE 813 00:1a:77 10 19
3: OFDLCK ADVISORY  READ  -1 103:02:18446744073709551615 0 9223372036854775806
4: LEASE  BREAKING  READ 5 fe:00:9 0 EOF
5: DELEG  ACTIVE    READ 6 fe:00:9 0 EOF
6: UNKNOWN UNKNOWN  READ 7 fe:00:10 0 0
7: POSIX  *NOINODE* WRITE 8 <none>:0 0 EOF
8: ACCESS ADVISORY  READ 0 fe:00:11 0 1
`

func TestParseLocks(t *testing.T) {
	const eof = math.MaxUint64
	want := []FileLock{
		{1, LockFlock, 0, true, false, 812, 254, 0, 1234, 0, eof},
		{1, LockFlock, 1, false, false, 900, 254, 0, 1234, 0, eof},
		{1, LockFlock, 2, true, false, 901, 254, 0, 1234, 0, eof},
		{2, LockPOSIX, 0, true, false, 813, 0, 26, 77, 10, 19},
		{3, LockOFD, 0, false, false, -1, 259, 2, eof, 0, 9223372036854775806},
		{4, LockLease, 0, false, true, 5, 254, 0, 9, 0, eof},
		{5, LockLease, 0, false, false, 6, 254, 0, 9, 0, eof},
		{6, LockUnknown, 0, false, false, 7, 254, 0, 10, 0, 0},
		{8, LockUnknown, 0, false, false, 0, 254, 0, 11, 0, 1},
	}
	for _, tail := range []string{"", "9: FLOCK  ADVIS"} { // a read that was cut
		got, err := ParseLocks([]byte(locks618 + tail))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v\n%+v", tail, err, got)
		}
	}
	for _, bad := range []string{"1 FLOCK", "x: FLOCK  ADVISORY  WRITE 812 fe:00:1234 0 EOF", "1:-> FLOCK  ADVISORY  WRITE 8 fe:00:1 0 EOF",
		"1: FLOCK  ADVISORY  WRITE 812 fe:00 0 EOF", "1: FLOCK  ADVISORY  WRITE 812 FE:00:1 0 EOF", "1: FLOCK  ADVISORY  WRITE p fe:00:1 0 EOF",
		"1: FLOCK  ADVISORY  WRITE 812 fe:00:1 -1 EOF", "1: FLOCK  ADVISORY  WRITE 812 fe:00:1 0 eof", "1: FLOCK  ADVISORY  WRITE 812 fe:00:1 0"} {
		if got, err := ParseLocks([]byte(bad + "\n")); err == nil || got != nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func FuzzParseLocks(f *testing.F) {
	fuzzParser(f, ParseLocks, func(t *testing.T, b []byte, all []FileLock) {
		if rows := bytes.Count(b, []byte("\n")); len(all) > rows {
			t.Fatalf("%d locks of %d rows", len(all), rows)
		}
		for _, l := range all {
			if l.Waits > 0 && !strings.Contains(string(b), "->") || l.Kind > LockLease {
				t.Fatalf("%+v", l)
			}
		}
	}, locks618, "1: FLOCK  ADVISORY  WRITE 812 fe:00:1234 0 EOF\n")
}

const partitions618 = "major minor  #blocks  name\n\n 254        0  268435456 vda\n 259        1        128 nvme0n1p1\n"

func TestParsePartitions(t *testing.T) {
	got, err := ParsePartitions([]byte(partitions618))
	if want := []Device{{254, 0, "vda"}, {259, 1, "nvme0n1p1"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %+v", err, got)
	}
	for _, bad := range []string{"254 0 vda", "254 0 1", "254 -1 1 vda", "4294967296 0 1 vda"} {
		if got, err := ParsePartitions([]byte(bad)); err == nil || got != nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func FuzzParsePartitions(f *testing.F) {
	fuzzParser(f, ParsePartitions, func(t *testing.T, b []byte, all []Device) {
		for _, d := range all {
			if d.Name == "" || !bytes.Contains(b, []byte(d.Name)) {
				t.Fatalf("%+v", d)
			}
		}
	}, partitions618)
}
