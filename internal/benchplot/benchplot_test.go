package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/golden"
)

func example(t *testing.T) *run {
	t.Helper()
	f, err := os.Open("testdata/bench.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := parse(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Rewrite with: go test ./internal/benchplot -run TestGolden -update
func TestGolden(t *testing.T) {
	r := example(t)
	svg, err := graph(r)
	if err != nil {
		t.Fatal(err)
	}
	for path, got := range map[string]string{"testdata/stopped-time.svg": svg, "testdata/tables.md": tables(r)} {
		golden.Want(t, path, []byte(got))
	}
}

// The picture is XML, its words are text, and all of it lies on the page.
func TestGraphIsXML(t *testing.T) {
	svg, err := graph(example(t))
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch tok := tok.(type) {
		case xml.CharData:
			words = append(words, strings.TrimSpace(string(tok)))
		case xml.StartElement:
			for _, a := range tok.Attr {
				v, err := strconv.ParseFloat(a.Value, 64)
				if err == nil && (v < 0 || v > max(width, height)) {
					t.Errorf("%s: %s = %v", tok.Name.Local, a.Name.Local, v)
				}
			}
		}
	}
	for _, want := range []string{"trap", "pull", "procfs (elapsed)", "100", "1,000", "10,000", "1 ms", "threads on the machine"} {
		if !strings.Contains("\n"+strings.Join(words, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("no text %q", want)
		}
	}
}

// Equal steps of a logarithmic axis are equal factors.
func TestAxis(t *testing.T) {
	a := axisOf([]point{{threads: 98}, {threads: 10_010}}, func(p point) float64 { return p.threads })
	a.from, a.to = 0, 200
	for v, want := range map[float64]float64{100: 0, 1000: 100, 10000: 200, math.Sqrt(10) * 100: 50} {
		if got := a.at(v); math.Abs(got-want) > 1e-6 {
			t.Errorf("%v at %v, want %v", v, got, want)
		}
	}
}

// Every color has a contrast of 3 or more (WCAG 2, for graphics) on a light page
// and on a dark one.
func TestColorsInLightAndDark(t *testing.T) {
	colors := []string{inkColor, gridColor}
	for _, e := range engines {
		colors = append(colors, e.color)
	}
	for _, c := range colors {
		for _, page := range []string{"#ffffff", "#0d1117", "#22272e"} {
			if got := contrast(luminance(t, c), luminance(t, page)); got < 3 {
				t.Errorf("%s on %s: contrast %.2f", c, page, got)
			}
		}
	}
}

func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }

func luminance(t *testing.T, color string) (sum float64) {
	t.Helper()
	rgb, err := strconv.ParseUint(color[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	for i, weight := range []float64{0.0722, 0.7152, 0.2126} {
		v := float64(rgb>>(8*i)&0xff) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}

func TestParse(t *testing.T) {
	r, err := parse(strings.NewReader("kernel: 6.18.5\nnot a pair\nBenchmarkA/b=1-c-2 \t 20\t 0.5 x/y \t 7 ns/op\nBenchmarkB\nok  \tx 1s\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.of("A"); len(got) != 1 || got[0].sub() != "b=1-c" || got[0].metrics["x/y"] != 0.5 || got[0].metrics["ns/op"] != 7 {
		t.Errorf("%+v", r)
	}
	if r.config["kernel"] != "6.18.5" || len(r.config) != 1 {
		t.Errorf("%v", r.config)
	}
	for _, bad := range []string{"", "kernel: 6\n", "BenchmarkA 20 x ns/op\n", "BenchmarkA 20 1 ns/op 2\n"} {
		if r, err := parse(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: %+v", bad, r)
		}
	}
}

func TestNoPointsNoGraph(t *testing.T) {
	for _, in := range []string{"BenchmarkOther 20 1 ns/op\n", "BenchmarkScale/threads=100-2 20 100 threads 5 trap-ns\n"} {
		r, err := parse(strings.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := graph(r); !errors.Is(err, errNoPoints) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestBetween(t *testing.T) {
	got, err := between([]byte("a\n"+begin+"old\n"+end+"b\n"), "new\n")
	if want := "a\n" + begin + "new\n" + end + "b\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", begin, end + begin} {
		if out, err := between([]byte(bad), "new\n"); err == nil {
			t.Errorf("%q: %q", bad, out)
		}
	}
}

// Three digits that count, and no "1000 µs".
func TestDuration(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0 ns", 999: "999 ns", 999.7: "1.00 µs", 12_345: "12.3 µs", 99_960: "100 µs", 999_600: "1.00 ms", 909_137_629: "909 ms", 1.5e9: "1.50 s",
	} {
		if got := duration(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := whole(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
