package main

import (
	"fmt"
	"strings"
)

// row is one line of a table: a metric of every result, formatted.
type row struct {
	title  string
	metric string
	format func(float64) string
}

// tables returns all that stands between the markers of the document, as markdown.
func tables(r *run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.machine())
	section := func(benchmark, title string, rows []row) {
		if results := r.of(benchmark); len(results) > 0 {
			fmt.Fprintf(&b, "\n%s\n", table(title, results, rows))
		}
	}
	section("Scale", "whole machine, medians", scaleRows)
	section("Floor", "against the floor, `--latency off --user-stacks off`", floorRows)
	if results := r.of("Floor"); len(results) > 0 {
		fmt.Fprintf(&b, "\n%s\n", shareTable(results))
	}
	section("Arrival", "first to last arrival, hogs per CPU", arrivalRows)
	section("Split", "threads in a part of a task, stopped time", splitRows)
	return b.String()
}

// machine says on which machine, and with which version, the figures were measured.
func (r *run) machine() string {
	var parts []string
	for _, f := range []struct{ key, format string }{
		{"date", "%s"}, {"version", "version %s"}, {"kernel", "Linux %s"}, {"cpus", "%s CPUs"}, {"cpu", "%s"}, {"note", "%s"},
	} {
		if v := r.config[f.key]; v != "" {
			parts = append(parts, fmt.Sprintf(f.format, v))
		}
	}
	return strings.Join(parts, ", ") + "."
}

var scaleRows = []row{
	{"threads on the machine", "threads", whole},
	{"`trap`, stopped", "trap-ns", duration},
	{"`trap --user-stacks off`, stopped", "bare-ns", duration},
	{"`pull`, stopped", "pull-ns", duration},
	{"`procfs`, elapsed, nothing stopped", "procfs-ns", duration},
	{"sequential `iter/task` pass, nothing stopped", "sequential-ns", duration},
	{"procfs / trap", "procfs/trap", times},
	{"procfs / trap without user stacks (goal: at least 50)", "procfs/bare", times},
	{"sequential / trap", "sequential/trap", times},
	{"pull / trap", "pull/trap", times},
	{"rounds", "rounds", whole},
	{"captures taken again", "skipped", whole},
}

var floorRows = []row{
	{"threads on the machine", "threads", whole},
	{"`trap` as by default, all CPUs, ns per thread", "default-ns/thread", whole},
	{"as by default / without both", "default/trap", ratio},
	{"floor, 1 CPU, ns per thread", "floor1-ns/thread", whole},
	{"`trap`, 1 CPU, ns per thread", "trap1-ns/thread", whole},
	{"trap / floor, 1 CPU (goal 1.35; wanted 1.25)", "trap1/floor1", ratio},
	{"floor, all CPUs, ns per thread", "floor-ns/thread", whole},
	{"`trap`, all CPUs, ns per thread", "trap-ns/thread", whole},
	{"trap / floor, all CPUs (goal 1.35; wanted 1.25)", "trap/floor", ratio},
	{"trap, all CPUs / 1 (goal on two: 0.60)", "trap/trap1", ratio},
	{"floor, all CPUs / 1", "floor/floor1", ratio},
	{"the former / the latter (goal 1.08)", "scaling/floor", ratio},
	{"`--latency task` / off", "task/trap", ratio},
	{"`--latency thread` / off", "thread/trap", ratio},
	{"rounds", "rounds", whole},
	{"captures taken again", "skipped", whole},
}

var arrivalRows = []row{
	{"`trap`, median", "trap-p50-ns", duration},
	{"`trap`, p99", "trap-p99-ns", duration},
	{"`trap`, longest", "trap-max-ns", duration},
	{"`pull`, median", "pull-p50-ns", duration},
	{"`pull`, p99", "pull-p99-ns", duration},
	{"`pull`, longest", "pull-max-ns", duration},
	{"rounds", "rounds", whole},
	{"captures taken again", "skipped", whole},
}

var splitRows = []row{
	{"64, ns per thread", "split64-ns/thread", whole},
	{"8 / 64", "split8/split64", ratio},
	{"16 / 64", "split16/split64", ratio},
	{"32 / 64", "split32/split64", ratio},
	{"128 / 64", "split128/split64", ratio},
	{"rounds", "rounds", whole},
}

// shareParts are the parts of the working CPUs' time, as BenchmarkFloor names them.
var shareParts = []struct{ title, part string }{
	{"kernel's unwinder", "unwind"},
	{"recording beyond it", "record"},
	{"census", "census"},
	{"second pass", "verify"},
	{"waiting on an empty queue", "queue"},
	{"waiting for the others' last work", "tail"},
	{"arrival, interrupts off", "arrival"},
	{"release to CPU given back", "exit"},
}

// table has a column per result and a row per metric that any of them has.
func table(title string, results []result, rows []row) string {
	heads := []string{title}
	for i := range results {
		heads = append(heads, results[i].sub())
	}
	lines := [][]string{heads}
	for _, r := range rows {
		line, any := []string{r.title}, false
		for i := range results {
			v, ok := results[i].metrics[r.metric]
			any = any || ok
			line = append(line, cell(v, ok, r.format))
		}
		if any {
			lines = append(lines, line)
		}
	}
	return markdown(lines)
}

// shareTable has two columns per result: one CPU at work, and all.
func shareTable(results []result) string {
	heads := []string{"share of the working CPUs' time"}
	for i := range results {
		heads = append(heads, results[i].sub()+", 1 CPU", results[i].sub()+", all")
	}
	lines := [][]string{heads}
	for _, p := range shareParts {
		line := []string{p.title}
		for i := range results {
			for _, name := range []string{"trap1", "trap"} {
				v, ok := results[i].metrics[name+"-"+p.part+"-%"]
				line = append(line, cell(v, ok, percent))
			}
		}
		lines = append(lines, line)
	}
	return markdown(lines)
}

// markdown writes a table; the first line is the head.
func markdown(lines [][]string) string {
	var b strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|---%s|\n", strings.Repeat("|---", len(line)-1))
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// cell writes a metric, or a dash if the result does not have it.
func cell(v float64, ok bool, format func(float64) string) string {
	if !ok {
		return "-"
	}
	return format(v)
}

// whole writes a number without fraction, with thousands apart.
func whole(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func ratio(v float64) string   { return fmt.Sprintf("%.2f", v) }
func times(v float64) string   { return fmt.Sprintf("%.1f", v) }
func percent(v float64) string { return fmt.Sprintf("%.1f %%", v) }

// duration writes ns with three significant figures.
func duration(v float64) string {
	switch {
	case v < 999.5:
		return fmt.Sprintf("%.0f ns", v)
	case v < 999.5e3:
		return fmt.Sprintf("%s µs", digits(v/1e3))
	case v < 999.5e6:
		return fmt.Sprintf("%s ms", digits(v/1e6))
	}
	return fmt.Sprintf("%s s", digits(v/1e9))
}

// digits writes three significant figures of a number below 1000.
func digits(v float64) string {
	switch {
	case v < 9.995:
		return fmt.Sprintf("%.2f", v)
	case v < 99.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
