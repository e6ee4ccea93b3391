package filter

import (
	"fmt"
	"strings"

	"stackshot/internal/show"
)

// helpWidth is that of a line of Help, in cells.
const helpWidth = 88

// Help describes the language in short, as a page of the command's help. A line that begins with two
// spaces stands as it is. docs/filter.md has all of it.
func Help() string {
	var b strings.Builder
	block := func(words []string) {
		for _, line := range show.Wrap(strings.Join(words, ", "), helpWidth-2) {
			b.WriteString("  " + line + "\n")
		}
	}
	b.WriteString(helpBegin)
	for _, f := range fields {
		ops := strings.ReplaceAll(oneOf(f.kind.ops), " or ", " ")
		fmt.Fprintf(&b, "  %-8s %-16s %s\n", f.name, ops, f.says)
	}
	b.WriteString("\nStates:\n\n")
	block(States())
	b.WriteString("\nKinds of wait (wait=* is any thread that waits):\n\n")
	block(Waits())
	return strings.TrimSuffix(b.String(), "\n")
}

const helpBegin = `The option --where of 'stackshot report', 'hang' and 'latency' shows only the threads for
which an expression is true:

  --where 'state=D and module=ext4 and age>10s'
  --where 'func~ext4_* and not name=kworker*'
  --where '(uid=1000 or name=java) and cpu<8'

An expression is comparisons, joined by "and", "or", "not" and parentheses. "not" binds
closer than "and", and "and" closer than "or". A comparison is a field, an operator and a
value. A value with a space, a parenthesis or a quote stands in quotes:
name="C2 CompilerThre". Durations are written 250ms, 10s, 1h30m, 2d12h.

Operators:

  =  !=        is the value, whole; is not
  ~            contains the value
  ^            begins with the value
  < <= > >=    is smaller or greater, of numbers and durations

* in a text stands for any characters, also none. A field with several values, as "func",
meets a comparison if one of them does. What the file does not hold meets none: of a
thread whose age is not known neither age<10s nor age>10s is true, but "not age>10s" is.

Fields, with their operators:

`
