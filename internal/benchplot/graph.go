package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// series is one line of the graph.
type series struct {
	metric, label, color string
	points               []point
}

type point struct{ threads, ns float64 } // ns: median over the rounds

// The colors are of medium lightness: each stands out on white and on near black, whichever
// the viewer uses as the page's background. A test checks the contrast.
const (
	inkColor  = "#768390"
	gridColor = "#8b949e"
)

var engines = []series{
	{metric: "procfs-ns", label: "procfs (elapsed)", color: "#c4681c"},
	{metric: "pull-ns", label: "pull", color: "#2f9e6e"},
	{metric: "trap-ns", label: "trap", color: "#2f81f7"},
}

// slack, in decades (3 %): a value that exceeds a power of ten by less begins no new decade.
const slack = 0.0128

// The picture and its margins, in pixels. The plot lies within the margins.
const (
	width, height           = 640, 400
	left, right             = 64, 120
	top, bottom             = 40, 48
	plotRight, plotBottom   = width - right, height - bottom
	labelHeight             = 14.0
	pointRadius, lineStroke = 3, 2
)

var errNoPoints = errors.New("no results of BenchmarkScale with threads, trap-ns, pull-ns and procfs-ns")

// graph draws time against threads as SVG, both axes logarithmic.
func graph(r *run) (string, error) {
	lines := slices.Clone(engines)
	var all []point
	for i := range lines {
		lines[i].points = pointsOf(r, lines[i].metric)
		if len(lines[i].points) == 0 {
			return "", errNoPoints
		}
		all = append(all, lines[i].points...)
	}
	x, y := axisOf(all, func(p point) float64 { return p.threads }), axisOf(all, func(p point) float64 { return p.ns })
	x.from, x.to = left, plotRight
	y.from, y.to = plotBottom, top
	var b strings.Builder
	head(&b)
	x.grid(&b, func(at, v float64) {
		line(&b, at, top, at, plotBottom)
		text(&b, at, plotBottom+18, "middle", inkColor, whole(v))
	})
	y.grid(&b, func(at, v float64) {
		line(&b, left, at, plotRight, at)
		text(&b, left-8, at+4, "end", inkColor, axisTime(v))
	})
	text(&b, (left+plotRight)/2, height-10, "middle", inkColor, "threads on the machine")
	text(&b, left, 20, "start", inkColor, "time the machine stood still, median")
	for i := range lines {
		lines[i].draw(&b, x, y)
	}
	labels(&b, lines, y)
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// pointsOf returns the points of a metric, ascending by threads.
func pointsOf(r *run, metric string) (out []point) {
	for _, res := range r.of("Scale") {
		n, ns := res.metrics["threads"], res.metrics[metric]
		if n > 0 && ns > 0 {
			out = append(out, point{n, ns})
		}
	}
	slices.SortFunc(out, func(a, b point) int { return cmp.Compare(a.threads, b.threads) })
	return out
}

// axis maps values to pixels by their logarithms; low and high are exponents of ten.
type axis struct{ low, high, from, to float64 }

// axisOf spans the points by whole decades, at least one.
func axisOf(points []point, of func(point) float64) axis {
	low, high := of(points[0]), of(points[0])
	for _, p := range points {
		low, high = min(low, of(p)), max(high, of(p))
	}
	a := axis{low: math.Floor(math.Log10(low) + slack), high: math.Ceil(math.Log10(high) - slack)}
	a.high = max(a.high, a.low+1)
	return a
}

func (a axis) at(v float64) float64 {
	return a.from + (math.Log10(v)-a.low)/(a.high-a.low)*(a.to-a.from)
}

// grid calls mark for each power of ten, with its pixel and its value.
func (a axis) grid(b *strings.Builder, mark func(at, v float64)) {
	for e := a.low; e <= a.high; e++ {
		v := math.Pow(10, e)
		mark(a.at(v), v)
	}
}

// draw writes a line with a circle and a tooltip at each point.
func (s *series) draw(b *strings.Builder, x, y axis) {
	var path []string
	for _, p := range s.points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(p.threads), y.at(p.ns)))
	}
	fmt.Fprintf(b, "<polyline fill=\"none\" stroke=%q stroke-width=\"%d\" points=%q/>\n", s.color, lineStroke, strings.Join(path, " "))
	for _, p := range s.points {
		fmt.Fprintf(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=%q><title>%s: %s threads, %s</title></circle>\n",
			x.at(p.threads), y.at(p.ns), pointRadius, s.color, s.label, whole(p.threads), duration(p.ns))
	}
}

// labels writes the label of each line at the end of the line, from top to bottom, without
// overlap.
func labels(b *strings.Builder, lines []series, y axis) {
	last := func(s series) float64 { return y.at(s.points[len(s.points)-1].ns) }
	slices.SortFunc(lines, func(s, t series) int { return cmp.Compare(last(s), last(t)) })
	free := math.Inf(-1)
	for _, s := range lines {
		at := max(last(s)+4, free)
		text(b, plotRight+10, at, "start", s.color, s.label)
		free = at + labelHeight
	}
}

func head(b *strings.Builder) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="system-ui, sans-serif" font-size="12">
<title>Stopped time against threads, one line per engine</title>
`, width, height, width, height)
}

func line(b *strings.Builder, x1, y1, x2, y2 float64) {
	fmt.Fprintf(b, "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=%q stroke-opacity=\"0.35\"/>\n", x1, y1, x2, y2, gridColor)
}

func text(b *strings.Builder, x, y float64, anchor, color, s string) {
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=%q fill=%q>%s</text>\n", x, y, anchor, color, s)
}

// axisTime writes a power of ten, in ns, with its unit.
func axisTime(v float64) string {
	for _, u := range []struct {
		ns   float64
		name string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
		if v >= u.ns*0.99 {
			return fmt.Sprintf("%.0f %s", v/u.ns, u.name)
		}
	}
	return fmt.Sprintf("%.0f ns", v)
}
