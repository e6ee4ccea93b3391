package filter

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"stackshot/internal/golden"
)

// What is wrong is said with what would be right, and where.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		text   string
		column int
		words  string
	}{
		{"", 1, `want a field, "not" or "("; fields are state, name, pid, tid, uid, func, module, wait, cgroup, age, threads, cpu`},
		{"pid=1 stat=D", 7, `"stat": want "and", "or" or the end`},
		{"not   stat=D", 7, `unknown field "stat": want state, name, pid, tid, uid, func, module, wait, cgroup, age, threads, cpu`},
		{"name=ä or Name=x", 11, `unknown field "Name"`},
		{"pid", 4, "want = != < <= > or >= after pid"},
		{"pid 1", 5, `"1": want = != < <= > or >= after pid`},
		{"pid=", 5, "want a value"},
		{"pid=x", 5, `"x" is no number`},
		{"pid=1*", 5, `"1*" is no number`},
		{"pid=-1", 5, `"-1" is no number`},
		{"pid=18446744073709551616", 5, "is no number"},
		{"pid~1", 4, `pid has no "~": want = != < <= > or >=`},
		{"name<a", 5, `name has no "<": want = != ~ or ^`},
		{"age=1s", 4, `age has no "=": want < <= > or >=`},
		{"age>10", 5, `"10" is no duration: want such as 250ms, 10s, 1h30m or 2d`},
		{"state=d", 7, `unknown state "d": want D, R, S, T, t, I, P, Z, X, blocked, running, runnable, stopped, sleeping, unknown, parked, idle, zombie, cpu_idle, traced, frozen`},
		{"state~D", 6, `state has no "~": want = or !=`},
		{"wait=mutx", 6, `unknown kind of wait "mutx": want at_rest, block_io,`},
		{"name=~x", 5, `"=~": want = != ~ or ^ after name`},
		{"name!~x", 5, `"!~": want`},
		{"name=", 6, "want a value"},
		{`name=""`, 6, "an empty value"},
		{"name='x", 6, "a quote that is not closed"},
		{"name='x'y", 6, "a value that goes on after its quotes"},
		{"name=x'y'", 6, "' within a value: put quotes around all of it"},
		{"name=(sd-pam)", 6, "want a value"},
		{"name=a(b)", 6, "( within a value: put quotes around all of it"},
		{"(pid=1", 7, `want "and", "or", or the ")" of the "(" in column 1`},
		{"(pid=1 pid=2)", 8, `want "and", "or", or the ")" of the "(" in column 1`},
		{"pid=1)", 6, `")": want "and", "or" or the end`},
		{"()", 2, `")": want a field, "not" or "("`},
		{"pid=1 and", 10, `want a field, "not" or "("`},
		{"pid=1 && pid=2", 7, `"&&": want "and", "or" or the end`},
		{"not", 4, "want a field"},
		{"or", 1, `unknown field "or"`},
		{"pid=1 or \x1b[2J=3", 10, `unknown field "\x1b[2J"`},
		{"\xff\xfe ", 1, `unknown field "\xff\xfe"`},
		{strings.Repeat("(", 1000), 101, "more than 100 levels of parentheses and not"},
		{strings.Repeat("not ", 1000), 401, "more than 100 levels"},
		{strings.Repeat("(", 1_000_000), 1, "longer than 65536 bytes"},
	} {
		e, err := Parse(c.text)
		at, ok := errors.AsType[*Error](err)
		if !ok || e != nil || at.Column != c.column || !strings.Contains(at.Reason, c.words) {
			t.Errorf("%.40q: %v, %v; want column %d: %s", c.text, e, err, c.column, c.words)
		}
		if err != nil {
			golden.Showable(t, []byte(err.Error()))
		}
	}
}

// What people write, and how it is read.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"state=D and module=ext4 and func~ext4_* and wait=mutex and cgroup^system.slice and age>10s and threads>100 and not name=kworker*": "",
		"pid=1 or pid=2 and pid=3":                   "",
		"(pid=1 or pid=2) and pid=3":                 "",
		"pid=1 or (pid=2 or pid=3)":                  "",
		"not not pid=1":                              "",
		"NOT(pid = 1)":                               "not pid=1",
		" ( ( pid\t==\n1 ) ) ":                       "pid=1",
		"not pid=1 and pid=2":                        "",
		"name=and and name=or":                       "",
		`func='operator\*' or name="it's"`:           `func="operator\*" or name="it\'s"`,
		`cgroup~dev-disk\x2dby`:                      `cgroup~"dev-disk\\x2dby"`,
		`func~std::vector<int>::*`:                   `func~"std::vector<int>::*"`,
		`name=it\'s\"`:                               `name="it\'s\""`,
		"wait=/mnt/nfs or wait=0x10 or wait~vda":     "",
		"name=[kworker/0:1]":                         "",
		"age>=1h30m and age<2d and uid!=0 and cpu=3": "",
	} {
		if want == "" {
			want = text
		}
		if e, err := Parse(text); err != nil || e.String() != want {
			t.Errorf("%s: %v, %v", text, e, err)
		}
	}
}

// F1, F2: no text makes the parser fail otherwise than with a column within the text, and what
// it reads it reads again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"state=D and module=ext4 and not (name=kworker* or age<10s)", `name='a\'b' or func~"std::*<int>"`, "pid>=1", "not not (", "wait=0x1 or wait^'the kernel'", "(((", "\xff=\x00",
	} {
		f.Add(text)
	}
	w := randomWorld(7)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			at, ok := errors.AsType[*Error](err)
			if !ok || e != nil || at.Column < 1 || at.Column > utf8.RuneCountInString(text)+1 {
				t.Fatalf("%q: %v, %v", text, e, err)
			}
			golden.Showable(t, []byte(err.Error()))
			return
		}
		again, err := Parse(e.String())
		if len(e.String()) <= maxText && (err != nil || again.String() != e.String()) {
			t.Fatalf("%q is read as %q, and that as %v, %v", text, e, again, err)
		}
		chosen := Select(e, w.s, w.v)
		if again != nil && len(Select(again, w.s, w.v)) != len(chosen) {
			t.Fatalf("%q and %q choose other threads", text, e)
		}
		if len(Select(&Expr{Op: Not, Args: []*Expr{e}}, w.s, w.v))+len(chosen) != len(w.threads) {
			t.Fatalf("%q: a thread is neither in it nor in its negation", text)
		}
	})
}

func TestComplete(t *testing.T) {
	for text, want := range map[string][]string{
		"":                    append(Fields(), "not"),
		"s":                   {"state"},
		"state=st":            {"state=stopped"},
		"pid=1 a":             {"pid=1 and"},
		"pid=1 and (c":        {"pid=1 and (cgroup", "pid=1 and (cpu"},
		"not wait!=rw":        {"not wait!=rwsem", "not wait!=rwsem_read", "not wait!=rwsem_write"},
		"name=x":              nil,
		"(pid=1 or state=D) ": {"(pid=1 or state=D) and", "(pid=1 or state=D) or"},
	} {
		if got := Complete(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// docs/filter.md has every field with its operators and every state, and its examples can be
// read.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/filter.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|.*\\| ([^|]*) \\|$").FindAllStringSubmatch(page, -1) {
		rows[m[1]] = m[2]
	}
	for _, f := range fields {
		ops := rows[f.name]
		if as, ok := strings.CutPrefix(ops, "as `"); ok {
			ops = rows[strings.TrimSuffix(as, "`")]
		}
		if want := strings.Trim(strings.ReplaceAll("`"+oneOf(f.kind.ops)+"`", " ", "` `"), " "); ops != strings.ReplaceAll(want, "`or` ", "") {
			t.Errorf("%s: %q, the package has %s", f.name, ops, want)
		}
	}
	for _, s := range States() {
		if !strings.Contains(page, "`"+s+"`") {
			t.Errorf("no state %s", s)
		}
	}
	page += "\n" + Help()
	examples := append(regexp.MustCompile(`--where '(.*?)'\s`).FindAllStringSubmatch(page, -1), regexp.MustCompile("`([a-z]+[=~^<>][^`]+)`").FindAllStringSubmatch(page, -1)...)
	if len(examples) < 15 {
		t.Errorf("only %d examples", len(examples))
	}
	for _, m := range examples {
		if _, err := Parse(m[1]); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
}

// Help has every field with its operators, every operator, state and kind of wait, and fits a man page.
func TestHelp(t *testing.T) {
	help := Help()
	if strings.HasSuffix(help, "\n") {
		t.Error("ends in an empty line")
	}
	for _, f := range fields {
		ops := strings.ReplaceAll(oneOf(f.kind.ops), " or ", " ")
		if f.says == "" || !regexp.MustCompile(`(?m)^  `+f.name+` +`+regexp.QuoteMeta(ops)+` +`+regexp.QuoteMeta(f.says)+`$`).MatchString(help) {
			t.Errorf("no %s with %s: %s", f.name, ops, f.says)
		}
	}
	for _, word := range append(States(), Waits()...) {
		if !regexp.MustCompile(`(?m)^  (.*, )?` + word + `(,|$)`).MatchString(help) {
			t.Errorf("no %s", word)
		}
	}
	for _, op := range comparisons {
		if !regexp.MustCompile(`(?m)^  (. |.. )*` + regexp.QuoteMeta(string(op)) + ` `).MatchString(help) {
			t.Errorf("no %s", op)
		}
	}
	for line := range strings.Lines(help) {
		if n := len(line) - 1; n > 88 || n > 73 && strings.HasPrefix(line, "  ") {
			t.Errorf("%d cells: %s", n, line)
		}
	}
	for a, b := range map[string]string{ // what it says of priorities and of !=
		"not pid=1 and pid=2 or pid=3": "((not (pid=1)) and pid=2) or pid=3", "func!=x": "not func=x",
	} {
		x, err := Parse(a)
		y, err2 := Parse(b)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		w := randomWorld(3)
		if got, want := Select(x, w.s, w.v), Select(y, w.s, w.v); !reflect.DeepEqual(got, want) {
			t.Errorf("%s chooses %d threads, %s %d", a, len(got), b, len(want))
		}
	}
}
