package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// event is a line of go test -json (go doc test2json).
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// name is a test, or with an empty test the package.
type name struct{ pkg, test string }

// run is what a run of go test came to.
type run struct {
	out     io.Writer
	said    map[name][]string // what has not been printed or thrown away
	passed  map[name]bool
	skipped []skip
	failed  int
	ended   int // packages
}

type skip struct {
	name
	why string
}

func newRun(out io.Writer) *run {
	return &run{out: out, said: map[name][]string{}, passed: map[name]bool{}}
}

// read takes all events. What is none, the go command's own words, is printed.
func (r *run) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				fmt.Fprint(r.out, line)
			} else {
				r.take(e)
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

func (r *run) take(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.said[n] = append(r.said[n], e.Output)
	case "pass", "skip", "fail":
		r.end(n, e.Action)
	}
}

// end prints what a test that failed has said, and the last line of a package.
func (r *run) end(n name, how string) {
	said := r.said[n]
	delete(r.said, n)
	switch {
	case n.test == "":
		r.ended++
		if how == "fail" {
			r.failed++
			r.unended(n.pkg)
			fmt.Fprint(r.out, strings.Join(said, ""))
		} else if len(said) > 0 {
			fmt.Fprint(r.out, said[len(said)-1])
		}
	case how == "fail":
		r.failed++
		fmt.Fprint(r.out, strings.Join(said, ""))
	case how == "skip":
		r.skipped = append(r.skipped, skip{n, reason(said)})
	default:
		r.passed[n] = true
	}
}

// unended prints what tests have said that a package's end, a panic or its time limit,
// has cut off.
func (r *run) unended(pkg string) {
	for n, said := range r.said {
		if n.pkg == pkg {
			fmt.Fprint(r.out, strings.Join(said, ""))
			delete(r.said, n)
		}
	}
}

var place = regexp.MustCompile(`^\s+[a-z0-9_]+\.go:\d+: `)

// reason is what a test logged last before it was skipped.
func reason(said []string) string {
	why := ""
	for _, line := range said {
		if at := place.FindString(line); at != "" {
			why = strings.TrimSpace(line[len(at):])
		}
	}
	return why
}
