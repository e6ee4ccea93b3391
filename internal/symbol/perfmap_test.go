package symbol

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testheap"
)

// naivePerfMap keeps every line.
func naivePerfMap(text string, addr uint64) (name string, start uint64) {
	for line := range strings.Lines(text) {
		var lo, size uint64
		var n string
		if k, _ := fmt.Sscanf(line, "%x %x %s", &lo, &size, &n); k == 3 && addr-lo < size {
			name, start = n, lo
		}
	}
	return name, start
}

func TestScanPerfMapIsTheNaiveOne(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var text strings.Builder
		for i := range rnd.IntN(40) {
			fmt.Fprintf(&text, "%x %x f%d\n", 0x1000+rnd.IntN(400), rnd.IntN(60), i)
		}
		var addrs []uint64
		for range 50 {
			addrs = append(addrs, uint64(0x1000+rnd.IntN(460)))
		}
		slices.Sort(addrs)
		got, err := ScanPerfMap(strings.NewReader(text.String()), addrs, newTexts(maxTexts, nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addrs {
			if name, start := naivePerfMap(text.String(), a); got[a].Name != name || got[a].Start != start {
				t.Fatalf("%#x is %+v, want %q from %#x, of\n%s", a, got[a], name, start, text.String())
			}
		}
	}
}

func TestPerfMapLines(t *testing.T) {
	long := strings.Repeat("x", 3*maxPerfLine)
	for line, want := range map[string]string{
		"10 10 LazyCompile:~a b c.js:1\n": "LazyCompile:~a b c.js:1",
		"0x10 0x10 f\n":                   "f",
		"10 10 f":                         "f",
		"10 10 f\r\n":                     "f",
		"10 10 _ZN3lab1fEi\n":             "lab::f",
		"10 0 f\n":                        "",
		"10 10\n":                         "",
		"10 10 \n":                        "",
		"zz 10 f\n":                       "",
		"10 -1 f\n":                       "",
		long + " 10 10 f\n":               "",
		long + "\n10 10 f\n":              "f",
		"\x00\n\n10 10 f\n":               "f",
		"ffffffffffffffff 20 f\n":         "", // does not wrap around
		"10 10 f\n18 8 g\n":               "g",
	} {
		got, err := ScanPerfMap(strings.NewReader(line), []uint64{0x18}, newTexts(maxTexts, nil))
		if err != nil || got[0x18].Name != want {
			t.Errorf("%.40q: %+v, %v, want %q", line, got, err, want)
		}
	}
}

// FuzzPerfMap: any bytes give names no longer than the cap, of what was asked.
func FuzzPerfMap(f *testing.F) {
	f.Add([]byte("10 10 f\n18 8 g\n"), uint64(0x18))
	f.Add([]byte("ffffffffffffff00 ffffffffffffffff x\n"), uint64(7))
	f.Add(bytes.Repeat([]byte("1 "), 5000), uint64(1))
	f.Fuzz(func(t *testing.T, b []byte, addr uint64) {
		addrs := slices.Compact([]uint64{addr / 2, addr})
		got, err := ScanPerfMap(bytes.NewReader(b), addrs, newTexts(maxTexts, nil))
		if err != nil {
			t.Fatal(err)
		}
		for a, fn := range got {
			if !slices.Contains(addrs, a) || fn.Start > a || len(fn.Name) > maxName+3 {
				t.Errorf("%#x is %+v", a, fn)
			}
		}
	})
}

// Of a line that is too long the beginning counts. What stands behind it is no line.
func TestLongPerfMapLine(t *testing.T) {
	long := "1000 10 " + strings.Repeat("n", maxPerfLine-8) + "2000 10 behind\n3000 10 next\n"
	got, err := ScanPerfMap(strings.NewReader(long), []uint64{0x1004, 0x2004, 0x3004}, newTexts(maxTexts, nil))
	if err != nil || len(got) != 2 || !strings.HasPrefix(got[0x1004].Raw, "nnn") || got[0x3004].Raw != "next" {
		t.Errorf("%.80v, %v", got, err)
	}
}

// A line that holds all addresses has one name, and names have their bound.
func TestPerfMapNamesAreShared(t *testing.T) {
	addrs := make([]uint64, 50_000)
	for i := range addrs {
		addrs[i] = uint64(i)
	}
	text := "0 ffffffffffffffff " + strings.Repeat("n", 4000) + "\n"
	testheap.Bound(t, 32<<20, "one line for all addresses", func() {
		if got, err := ScanPerfMap(strings.NewReader(text), addrs, newTexts(maxTexts, nil)); err != nil || len(got) != len(addrs) {
			t.Errorf("%d of %d, %v", len(got), len(addrs), err)
		}
	})
	all := &room{}
	all.left.Store(5000)
	kept := newTexts(maxTexts, all)
	if got, err := ScanPerfMap(strings.NewReader(text), addrs, kept); err != nil || len(got) != len(addrs) {
		t.Errorf("with room for one name %d of %d, %v", len(got), len(addrs), err)
	}
	kept = newTexts(maxTexts, all) // another file
	if got, err := ScanPerfMap(strings.NewReader(text), addrs, kept); err != nil || len(got) != 0 || kept.err() == nil {
		t.Errorf("without room %d, %v, said %v", len(got), err, kept.err())
	}
}
