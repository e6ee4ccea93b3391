// Command testskips reads what go test -json writes, prints what a person wants to
// read of it, and holds the skipped tests against a list:
//
//	go test -json ./... | testskips FILE
//
// Its exit code is 1 where a test failed, where one was skipped that the list does
// not have, and where more were skipped for a busy host than the list allows. That a
// listed test ran is no fault, for machines differ; it is said.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go test -json ./... | testskips FILE")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testskips:", err)
		os.Exit(1)
	}
}

func check(file string, in io.Reader, out io.Writer) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	l, err := parseList(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	r := newRun(out)
	if err := r.read(in); err != nil {
		return err
	}
	return l.judge(r, out)
}
