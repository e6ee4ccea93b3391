// Command testskips runs go test, prints what a person wants to read of it, and holds
// the tests that were skipped, and those that failed, against a list:
//
//	testskips FILE [-FLAG=VALUE]... PACKAGE...
//
// Its exit code is 1 where a test was skipped that the list does not have, where more
// were skipped for a busy host than the list allows, and where a test failed, but for a
// few that fail under the load of the whole run alone (again.go). That a listed test
// ran is no fault, for machines differ; it is said.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: testskips FILE [-FLAG=VALUE]... PACKAGE...")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2:], goTest, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testskips:", err)
		os.Exit(1)
	}
}

// tester runs go test with these arguments, prints to out what a person wants to read,
// and says what it came to. Its error says that the run itself cannot be trusted.
type tester func(out io.Writer, args []string) (*run, error)

func check(file string, args []string, test tester, out io.Writer) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	l, err := parseList(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	r, err := test(out, args)
	if err != nil {
		return err
	}
	r.slowest(out)
	wrong := secondLook(r, l.mostUnsteady, args, test, out)
	return errors.Join(wrong, l.judge(r, out))
}

func goTest(out io.Writer, args []string) (*run, error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := newRun(out)
	err = r.read(events)
	ended := cmd.Wait()
	// An exit code that no failure explains: the go command's own, or events that this
	// program does not know.
	if ended != nil && len(r.failed) == 0 && len(r.broken) == 0 {
		err = errors.Join(err, fmt.Errorf("go test: %w, and no test failed", ended))
	}
	return r, err
}
