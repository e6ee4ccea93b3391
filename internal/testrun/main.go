// Command testrun runs the tests of one tier (package testneed), prints what a person wants
// to read of them, and holds what was skipped, and what failed, against two lists:
//
//	testrun TIER [-FLAG=VALUE]...
//
// It is run where go.mod is; the flags are go test's. Its exit code is 1 where a test failed, or
// was skipped though .ci/skips does not have it. Its last lines name each failure, with the
// command that runs it again. A test of tier live or lab that fails, and then passes twice alone,
// is unsteady: it is named, and up to three in one run do not refuse a change (again.go).
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Files that say what may be skipped, and what is known to be unsteady.
const (
	skipsFile    = ".ci/skips"
	unsteadyFile = ".ci/unsteady"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: testrun unit|live|lab [-FLAG=VALUE]...")
		os.Exit(2)
	}
	if err := runTier(os.Args[1], os.Args[2:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}

// runTier runs the tests of a tier of the module in the current directory.
func runTier(tier string, flags []string, out io.Writer) error {
	skips, err := readList(skipsFile, parseSkips)
	if err != nil {
		return err
	}
	known, err := readList(unsteadyFile, parseUnsteady)
	if err != nil {
		return err
	}
	all, err := tests(".")
	if err != nil {
		return err
	}
	args, env, err := tierArgs(all, tier)
	if err != nil {
		return err
	}
	j := judge{tier: tier, tests: all, skips: skips, known: known, test: goTest(env)}
	return j.whole(append(flags, args...), out)
}

// tester runs go test with these arguments, prints to out what a person wants to read,
// and says what it came to. Its error says that the run itself cannot be trusted.
type tester func(out io.Writer, args []string) (*run, error)

// goTest is the real one, with env in its environment.
func goTest(env []string) tester {
	return func(out io.Writer, args []string) (*run, error) {
		cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
		cmd.Env = append(os.Environ(), env...)
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
		// program does not know. Or the go command was ended before it had told all.
		if ended != nil && (cmd.ProcessState.ExitCode() != 1 || len(r.failed) == 0 && len(r.broken) == 0) {
			err = errors.Join(err, fmt.Errorf("go test: %w, and no test failed", ended))
		}
		return r, err
	}
}

// readList reads one of the lists of .ci.
func readList[T any](file string, parse func(string) (T, error)) (T, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		var none T
		return none, err
	}
	l, err := parse(string(text))
	if err != nil {
		return l, fmt.Errorf("%s: %w", file, err)
	}
	return l, nil
}

// fields gives the words of each line that is neither empty nor a comment, with its number.
func fields(text string, each func(line int, words []string) error) error {
	for i, line := range strings.Split(text, "\n") {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			if err := each(i+1, words); err != nil {
				return fmt.Errorf("line %d: %w", i+1, err)
			}
		}
	}
	return nil
}
