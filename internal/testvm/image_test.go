package testvm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// newcEntry is what readNewc finds.
type newcEntry struct {
	name string
	mode int
	data []byte
}

// readNewc reads by the format's definition alone.
func readNewc(t *testing.T, b []byte) []newcEntry {
	t.Helper()
	var all []newcEntry
	for at := 0; ; {
		if string(b[at:at+6]) != "070701" {
			t.Fatalf("magic %q at %d", b[at:at+6], at)
		}
		var field [13]int
		for i := range field {
			v, err := strconv.ParseUint(string(b[at+6+8*i:at+14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			field[i] = int(v)
		}
		name := b[at+110 : at+110+field[11]]
		if name[len(name)-1] != 0 {
			t.Fatalf("name %q does not end", name)
		}
		dataAt := (at + 110 + field[11] + 3) / 4 * 4
		e := newcEntry{string(name[:len(name)-1]), field[1], b[dataAt : dataAt+field[6]]}
		if e.name == "TRAILER!!!" {
			return all
		}
		all = append(all, e)
		at = (dataAt + field[6] + 3) / 4 * 4
	}
}

// Any files come out of the archive as they went in, after their folders, each
// folder once.
func TestArchive(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var b bytes.Buffer
	a := newArchive(&b)
	want := map[string][]byte{}
	for i := range 100 {
		name := fmt.Sprintf("d%d/e%d/f%d", rng.IntN(5), rng.IntN(5), i)
		want[name] = make([]byte, rng.IntN(40))
		for j := range want[name] {
			want[name][j] = byte(rng.IntN(256))
		}
		a.file(name, 0o644, want[name])
	}
	a.link("l", "/init")
	a.device("dev/null", 0o666, 1, 3)
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	seen, files := map[string]int{}, 0
	for _, e := range readNewc(t, b.Bytes()) {
		seen[e.name]++
		for i, c := range e.name {
			if c == '/' && seen[e.name[:i]] != 1 {
				t.Fatalf("%s: folder %s was written %d times before", e.name, e.name[:i], seen[e.name[:i]])
			}
		}
		if e.mode == modeRegular|0o644 {
			files++
			if !bytes.Equal(e.data, want[e.name]) {
				t.Fatalf("%s holds %x, want %x", e.name, e.data, want[e.name])
			}
		}
	}
	if files != len(want) || seen["l"] != 1 || seen["dev/null"] != 1 {
		t.Errorf("%d files of %d, link %d, device %d", files, len(want), seen["l"], seen["dev/null"])
	}
}

func TestFlagsOfGoTest(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{[]string{"-run", "TestX", "-v"}, []string{"-test.run", "TestX", "-test.v"}},
		{[]string{"--run=^A$", "-bench=."}, []string{"-test.run=^A$", "-test.bench=."}},
		{[]string{"-test.count=2", "-update"}, []string{"-test.count=2", "-update"}},
		{[]string{"-run", "run", "-args", "-run", "x"}, []string{"-test.run", "run", "-run", "x"}},
		{nil, nil},
	} {
		if got := testArgs(c.in); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

// Budgets grow where CPUs take turns; who asks for a factor gets that one.
func TestFactor(t *testing.T) {
	two := Layout{CPUs: 2}
	for _, c := range []struct {
		test Test
		host int
		want int
	}{
		{Test{}, 4, aloneFactor}, {Test{}, 2, sharedFactor}, {Test{Guest: Config{CPUs: 1}}, 1, aloneFactor},
		{Test{Guest: Config{CPUs: 8}}, 16, aloneFactor}, {Test{Guest: Config{CPUs: 8}}, 8, sharedFactor},
		{Test{Guest: Config{CPUs: 8, Layout: two}}, 4, aloneFactor}, {Test{Factor: 50, Guest: Config{CPUs: 8}}, 2, 50},
	} {
		if got := c.test.factor(c.host); got != c.want {
			t.Errorf("%d CPUs on %d, asked for %d: %d, want %d", c.test.Guest.cpus(), c.host, c.test.Factor, got, c.want)
		}
	}
}
