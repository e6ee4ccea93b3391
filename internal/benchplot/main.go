// Benchplot makes the figures of docs/performance.md from the output of `go test
// -bench` for package snapshot: the tables between the document's
// markers, and the graph of stopped time against threads.
//
//	go run ./internal/benchplot -doc docs/performance.md -svg docs/stopped-time.svg bench.txt
//
// Lines "key: value" before the results describe the machine: kernel, cpus,
// date, version, note; cpu comes from go test itself.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
)

func main() {
	doc := flag.String("doc", "", "document to put the tables into, between its markers; none: print them")
	svg := flag.String("svg", "", "where to put the graph; none: nowhere")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: benchplot [-doc FILE.md] [-svg FILE.svg] BENCH.txt")
		os.Exit(2)
	}
	if err := figures(flag.Arg(0), *doc, *svg); err != nil {
		fmt.Fprintln(os.Stderr, "benchplot:", err)
		os.Exit(1)
	}
}

// figures reads the results in file in and writes the tables and the graph.
func figures(in, doc, svg string) error {
	f, err := os.Open(in)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := parse(f)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	text := tables(r)
	if doc == "" {
		fmt.Print(text)
	} else if err := putInto(doc, text); err != nil {
		return err
	}
	if svg == "" {
		return nil
	}
	picture, err := graph(r)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	return os.WriteFile(svg, []byte(picture), 0o644)
}

// The tables stand between these lines of the document.
const (
	begin = "<!-- benchplot: begin -->\n"
	end   = "<!-- benchplot: end -->\n"
)

func putInto(path, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	out, err := between(old, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, out, 0o644)
}

// between replaces what stands between the markers.
func between(doc []byte, text string) ([]byte, error) {
	before, rest, ok := bytes.Cut(doc, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return nil, fmt.Errorf("want the lines %q and %q", begin, end)
	}
	return bytes.Join([][]byte{before, []byte(begin), []byte(text), []byte(end), after}, nil), nil
}
