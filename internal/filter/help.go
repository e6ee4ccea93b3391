package filter

import (
	"fmt"
	"strings"

	"stackshot/internal/show"
)

// blockWidth is that of a line of Help which stands as it is, in cells: a man page indents it, and has 80.
const blockWidth = 70

// Help describes the language in short, as a page of the command's help. A line that begins with two
// spaces stands as it is. docs/filter.md has all of it.
func Help() string {
	var b strings.Builder
	block := func(words []string) {
		for _, line := range show.Wrap(strings.Join(words, ", "), blockWidth-2) {
			b.WriteString("  " + line + "\n")
		}
	}
	b.WriteString(helpBegin)
	for _, f := range fields {
		fmt.Fprintf(&b, "  %-8s %-16s %s\n", f.name, strings.Trim(fmt.Sprint(f.kind.ops), "[]"), f.says)
	}
	b.WriteString("\nStates (blocked is D; a runnable thread waits for a CPU):\n\n")
	block(States())
	b.WriteString("\nKinds of wait (wait=* is any thread that waits):\n\n")
	block(Waits())
	return strings.TrimSuffix(b.String(), "\n")
}

const helpBegin = `'stackshot report' and 'latency' show only the threads for which the expression behind
--where is true, and 'stackshot hang' what such a thread has a part in:

  --where 'state=D and module=ext4 and age>10s'
  --where 'func~ext4_* and not name=kworker*'
  --where '(uid=1000 or name=java) and cpu<8'

An expression is one comparison, or several with "and", "or", "not" and parentheses.
"not" binds closer than "and", and "and" closer than "or". A comparison is a field, an
operator and a value. Capital and small letters differ. A value with a space, a
parenthesis or a quote stands in quotes: name="C2 CompilerThre". Durations are written
250ms, 10s, 1h30m, 2d12h.

Operators:

  =            is the value, whole
  !=           is not: func!=x is "not func=x", no function is x
  ~            contains the value
  ^            begins with the value
  < <= > >=    is smaller or greater, of numbers and durations

* in a text stands for any characters, also none; \* is the character itself. If a
thread has several values of a field, as of "func", one of them has to do. If the file
does not have a thread's age, neither age<10s nor age>10s is true of it, and
"not age>10s" is.

Fields, with their operators:

`
