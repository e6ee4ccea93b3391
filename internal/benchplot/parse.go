package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// run is the output of `go test -bench`, in the order of its lines.
type run struct {
	config  map[string]string // "key: value" lines: cpu, goos, and what was put before
	results []result
}

// result is one line: a benchmark and its metrics by unit.
type result struct {
	name    string // without "Benchmark" and the number of procs
	metrics map[string]float64
}

// parse reads the output of `go test -bench`. It skips lines that are neither a result
// nor "key: value". Errors: a result with something else than a number, with
// the line number; no result at all.
func parse(in io.Reader) (*run, error) {
	r := &run{config: map[string]string{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if fields := strings.Fields(line); strings.HasPrefix(line, "Benchmark") && len(fields) > 3 {
			res, err := parseResult(fields)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			r.results = append(r.results, res)
			continue
		}
		key, value, ok := strings.Cut(line, ": ")
		if ok && key != "" && !strings.ContainsAny(key, " \t") {
			r.config[key] = strings.TrimSpace(value)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(r.results) == 0 {
		return nil, fmt.Errorf("no results of benchmarks")
	}
	return r, nil
}

// parseResult takes a name, a count, and pairs of value and unit.
func parseResult(fields []string) (result, error) {
	res := result{name: strings.TrimPrefix(fields[0], "Benchmark"), metrics: map[string]float64{}}
	if i := strings.LastIndexByte(res.name, '-'); i > 0 {
		if _, err := strconv.Atoi(res.name[i+1:]); err == nil {
			res.name = res.name[:i]
		}
	}
	if len(fields)%2 != 0 {
		return res, fmt.Errorf("%s: a value without its unit", res.name)
	}
	for i := 2; i < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return res, fmt.Errorf("%s: %q is not a number", res.name, fields[i])
		}
		res.metrics[fields[i+1]] = v
	}
	return res, nil
}

// of returns the results of one benchmark: the first element of their names is its name.
func (r *run) of(benchmark string) (out []result) {
	for _, res := range r.results {
		if res.name == benchmark || strings.HasPrefix(res.name, benchmark+"/") {
			out = append(out, res)
		}
	}
	return out
}

// sub is the rest of a result's name.
func (r *result) sub() string {
	_, sub, _ := strings.Cut(r.name, "/")
	return sub
}
