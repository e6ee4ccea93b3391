package filter

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/show"
)

// evaluate is the plain evaluator: regular expressions over the plain values.
func evaluate(e *Expr, p *plain) bool {
	switch e.Op {
	case And:
		return !slices.ContainsFunc(e.Args, func(a *Expr) bool { return !evaluate(a, p) })
	case Or:
		return slices.ContainsFunc(e.Args, func(a *Expr) bool { return evaluate(a, p) })
	case Not:
		return !evaluate(e.Args[0], p)
	case IsNot:
		return !evaluate(&Expr{Op: Is, Field: e.Field, Value: e.Value}, p)
	}
	if n, ok := p.numbers[e.Field]; ok {
		var want uint64
		if unit := ""; e.Field == Age {
			fmt.Sscanf(e.Value[0], "%d%s", &want, &unit)
			want *= map[string]uint64{"s": 1e9, "ms": 1e6, "m": 60e9}[unit]
		} else {
			fmt.Sscan(e.Value[0], &want)
		}
		return map[Op]bool{Is: n == want, Less: n < want, AtMost: n <= want, More: n > want, AtLeast: n >= want}[e.Op]
	}
	pattern := make([]string, len(e.Value))
	for i, piece := range e.Value {
		pattern[i] = regexp.QuoteMeta(show.Clean(piece))
	}
	re := strings.Join(pattern, ".*")
	switch e.Op {
	case Is:
		re = "^(?:" + re + ")$"
	case Prefix:
		re = "^(?:" + re + ")"
	}
	compiled := regexp.MustCompile("(?s)" + re)
	return slices.ContainsFunc(p.texts[e.Field], func(s string) bool { return s != "" && compiled.MatchString(show.Clean(s)) })
}

// randomExpr makes an expression about the values that random worlds have.
func randomExpr(r *rand.Rand, depth int) *Expr {
	if depth == 0 || r.IntN(3) == 0 {
		return randomComparison(r)
	}
	switch r.IntN(3) {
	case 0:
		return &Expr{Op: Not, Args: []*Expr{randomExpr(r, depth-1)}}
	case 1:
		return &Expr{Op: And, Args: randomArgs(r, depth)}
	}
	return &Expr{Op: Or, Args: randomArgs(r, depth)}
}

func randomArgs(r *rand.Rand, depth int) (args []*Expr) {
	for range 2 + r.IntN(2) {
		args = append(args, randomExpr(r, depth-1))
	}
	return args
}

func randomComparison(r *rand.Rand) *Expr {
	f := pick(r, fields)
	e := &Expr{Field: f.name, Op: pick(r, f.kind.ops)}
	switch {
	case f.kind == state:
		e.Value = Literal(pick(r, States()))
	case f.kind == duration:
		e.Value = Literal(fmt.Sprint(r.IntN(40)) + pick(r, []string{"s", "ms", "m"}))
	case f.kind == number:
		e.Value = Literal(fmt.Sprint(r.IntN(40)))
	default:
		pool := map[string][]string{Name: names, Func: funcs, Module: mods, Cgroup: cgroups, Wait: {"mutex", "timer", "0x1", "/mnt/a", "the kernel mutex 0x2", "fuse.sshfs"}}[f.name]
		e.Value = randomValue(r, pick(r, pool))
		if check(e.Field, e.Op, e.Value) != nil {
			e.Op = Part
		}
	}
	return e
}

// randomValue is a text, a part of it, or either with wildcards in the place of some of it.
func randomValue(r *rand.Rand, s string) Value {
	if r.IntN(3) == 0 {
		from := r.IntN(len(s))
		s = s[from : from+1+r.IntN(len(s)-from)]
	}
	v := Value{}
	for r.IntN(2) == 0 {
		cut := r.IntN(len(s) + 1)
		if len(v) == 0 || cut > 0 {
			v = append(v, s[:cut])
		}
		s = s[min(cut+r.IntN(3), len(s)):]
	}
	if v = append(v, s); len(v) == 1 && s == "" {
		return Literal("x")
	}
	return v
}

// spell writes an expression as people may: spaces, quotes, capitals, parentheses where none
// are needed.
func spell(r *rand.Rand, e *Expr) string {
	space := func() string { return strings.Repeat(" ", r.IntN(2)) + strings.Repeat("\n\t", r.IntN(2)) }
	word := func(op Op) string {
		return pick(r, []string{string(op), strings.ToUpper(string(op))})
	}
	var s string
	switch e.Op {
	case Not:
		s = word(Not) + " " + spell(r, e.Args[0])
		if e.Args[0].Op == And || e.Args[0].Op == Or {
			s = word(Not) + space() + "(" + spell(r, e.Args[0]) + ")"
		}
	case And, Or:
		var parts []string
		for _, a := range e.Args {
			parts = append(parts, "("+space()+spell(r, a)+space()+")")
		}
		s = strings.Join(parts, space()+word(e.Op)+space())
	default:
		op := string(e.Op)
		if e.Op == Is {
			op = pick(r, []string{"=", "=="})
		}
		value := e.Value.String()
		if r.IntN(2) == 0 {
			mark := pick(r, []string{`"`, "'"})
			value = mark + e.Value.text() + mark
		}
		s = e.Field + space() + op + space() + value
	}
	if r.IntN(3) == 0 {
		return "(" + s + ")" + space()
	}
	return s
}

// F2, F3: whatever the expression, however it is spelled, it is read as it was meant, and
// chooses the threads that the plain evaluator chooses.
func TestAgainstPlainEvaluator(t *testing.T) {
	chosen, all := 0, 0
	for seed := range uint64(150) {
		w := randomWorld(seed)
		for range 10 {
			e := randomExpr(w.r, 4)
			for _, text := range []string{e.String(), spell(w.r, e)} {
				got, err := Parse(text)
				if err != nil || !reflect.DeepEqual(got, e) {
					t.Fatalf("seed %d: %q is read as %v, %v; want %v", seed, text, got, err, e)
				}
			}
			got := Select(e, w.s, w.v)
			for th, p := range w.threads {
				if want := evaluate(e, p); got[th] != want {
					t.Fatalf("seed %d: %s: %v, want %v of %+v", seed, e, got[th], want, p)
				}
			}
			chosen, all = chosen+len(got), all+len(w.threads)
		}
	}
	if chosen < all/10 || chosen > all*9/10 {
		t.Errorf("%d of %d threads were chosen: the expressions say little", chosen, all)
	}
}
