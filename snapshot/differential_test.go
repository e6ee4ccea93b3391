package snapshot

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// comparison counts what was compared, and keeps the pairs.
type comparison struct {
	compared map[string]int
	pairs    []pair
	stood    int                  // threads that stood still
	row      func(key string) row // the rule for a field; nil: that of the table
}

// field is one comparison to be made.
type field struct {
	key  string
	row  row
	p, q reflect.Value
}

// fields are those of a pair for which the table has a comparison, given what
// is present and whether the pair stood still.
func (k *comparison) fields(c *pair) []field {
	if c.x != nil {
		return k.fieldsOf(c, "Thread", reflect.ValueOf(c.x), reflect.ValueOf(c.y))
	}
	return k.fieldsOf(c, "Task", reflect.ValueOf(c.a), reflect.ValueOf(c.b))
}

func (k *comparison) fieldsOf(c *pair, name string, p, q reflect.Value) []field {
	var out []field
	p, q = reflect.Indirect(p), reflect.Indirect(q)
	if !p.IsValid() || !q.IsValid() {
		return nil // the row of the pointer tells
	}
	both := ^uint64(0)
	if f := p.FieldByName("Present"); f.IsValid() {
		both = f.Uint() & q.FieldByName("Present").Uint()
	}
	for i := range p.NumField() {
		key := name + "." + p.Type().Field(i).Name
		r := k.ruleOf(key)
		if r.how == nil || r.moves && !c.still || both&r.bit != r.bit {
			continue
		}
		out = append(out, field{key, r, p.Field(i), q.Field(i)})
		if s := reflect.Indirect(p.Field(i)); s.Kind() == reflect.Struct {
			out = append(out, k.fieldsOf(c, s.Type().Name(), p.Field(i), q.Field(i))...)
		}
	}
	return out
}

func (k *comparison) ruleOf(key string) row {
	if k.row != nil {
		return k.row(key)
	}
	return table[key]
}

func (k *comparison) Add(tb testing.TB, c pair, what string) {
	tb.Helper()
	k.pairs = append(k.pairs, c)
	if c.x != nil && c.still {
		k.stood++
	}
	for _, f := range k.fields(&c) {
		k.compared[f.key]++
		if why := f.row.how(&c, f.p, f.q); why != "" {
			tb.Errorf("%s: %s: %s", what, f.key, why)
		}
	}
}

// trace is what /proc says of how often a thread ran; it changes whenever the
// thread does.
func trace(tgid, tid int) string {
	dir := fmt.Sprintf("/proc/%d/task/%d/", tgid, tid)
	run, err := os.ReadFile(dir + "schedstat")
	if err != nil {
		return ""
	}
	return string(run)
}

// bothEngines captures the machine by an engine that stops it and by procfs,
// and gives the threads of the fixture that stood still all the while.
func bothEngines(tb testing.TB, engine string, f *testtask.Fixture) (pull, proc *kcdata.Snapshot, stood map[int]bool) {
	tb.Helper()
	before := map[int]string{}
	for i := range f.Children {
		for _, tid := range f.Children[i].Tids {
			before[tid] = trace(f.Children[i].Pid, tid)
		}
	}
	_, pull, _ = takeWhole(tb, Options{Engine: engine}, Request{})
	_, proc, _ = takeWhole(tb, Options{Engine: EngineProcfs}, Request{})
	stood = map[int]bool{}
	for i := range f.Children {
		for _, tid := range f.Children[i].Tids {
			stood[tid] = before[tid] != "" && before[tid] == trace(f.Children[i].Pid, tid)
		}
	}
	return pull, proc, stood
}

// compare holds the two files against each other for every child of f.
func compare(tb testing.TB, engine string, f *testtask.Fixture) *comparison {
	tb.Helper()
	pull, proc, stood := bothEngines(tb, engine, f)
	k := &comparison{compared: map[string]int{}}
	a, b := tasksByID(pull), tasksByID(proc)
	x, y := threadsByID(pull), threadsByID(proc)
	for i := range f.Children {
		c := &f.Children[i]
		id := uint64(c.Pid)
		if a[id] == nil || b[id] == nil {
			tb.Errorf("%v: in the file of pull %v, of procfs %v", c, a[id] != nil, b[id] != nil)
			continue
		}
		all := true
		for _, tid := range c.Tids {
			all = all && stood[tid]
		}
		if !all && !c.Want.Kernel && !strings.Contains(c.Want.Leader.States, "R") {
			tb.Errorf("%v ran between the captures: it is no fixture", c)
		}
		k.Add(tb, pair{pull: pull, proc: proc, a: a[id], b: b[id], still: all}, c.String())
		for _, tid := range c.Tids {
			what := fmt.Sprintf("%v thread %d", c, tid)
			if x[uint64(tid)] == nil || y[uint64(tid)] == nil {
				tb.Errorf("%s: in the file of pull %v, of procfs %v", what, x[uint64(tid)] != nil, y[uint64(tid)] != nil)
				continue
			}
			k.Add(tb, pair{pull: pull, proc: proc, a: a[id], b: b[id], x: x[uint64(tid)], y: y[uint64(tid)], still: stood[tid]}, what)
		}
	}
	return k
}

// pull equals procfs, field by field, where both know it; so does the trap.
func TestPullEqualsProcfsOnTheFixture(t *testing.T) {
	testneed.Smoke(t)
	requireBPF(t)
	equalOnTheFixture(t, EnginePull)
}

func TestTrapEqualsProcfsOnTheFixture(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireTrap(t)
	equalOnTheFixture(t, EngineTrap)
}

func equalOnTheFixture(t *testing.T, engine string) {
	t.Helper()
	k := compare(t, engine, testtask.Start(t, append(testtask.All(), testtask.Bystanders(testneed.Length(20, testtask.DefaultBystanders)))...))
	// A presence bit that is never set would turn a row off for good.
	for name, r := range table {
		if r.how != nil && k.compared[name] == 0 {
			t.Errorf("row %s never compared anything", name)
		}
	}
	seesEveryDifference(t, k)
}

// seesEveryDifference bends each compared field of some pair and expects the
// row to tell: no row is blind.
func seesEveryDifference(t *testing.T, k *comparison) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range k.pairs {
		for _, f := range k.fields(&c) {
			if seen[f.key] || f.p.Kind() == reflect.Struct {
				continue // the fields of a struct are bent themselves
			}
			kept := reflect.New(f.p.Type()).Elem()
			kept.Set(f.p)
			bend(f.p)
			seen[f.key] = f.row.how(&c, f.p, f.q) != ""
			f.p.Set(kept)
		}
	}
	for key, told := range seen {
		if !told {
			t.Errorf("row %s tells no difference", key)
		}
	}
}

// bend makes a value as different as its type allows.
func bend(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString(v.String() + "?")
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(^v.Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(^v.Uint() << (64 - v.Type().Bits()) >> (64 - v.Type().Bits()))
	case reflect.Array:
		bend(v.Index(0))
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		if e := v.Index(v.Len() - 1); e.Kind() == reflect.Pointer {
			e.Set(reflect.New(e.Type().Elem()))
		}
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		} else {
			v.SetZero()
		}
	}
}
