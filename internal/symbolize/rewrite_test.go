package symbolize

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

func parse(t testing.TB, plain []byte) *kcdata.Snapshot {
	t.Helper()
	s, err := kcdata.ParseSnapshot(plain)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rewrite is Rewrite of a file that was just read.
func rewrite(plain []byte, b book) ([]byte, Tally, error) {
	s, _ := kcdata.ParseSnapshot(plain)
	return Rewrite(plain, s, b)
}

// others are a file's items, byte for byte, but for those that names are in.
func others(t testing.TB, plain []byte) [][]byte {
	t.Helper()
	e, err := kcdata.EditBuffer(plain)
	if err != nil {
		t.Fatal(err)
	}
	inTask := false
	var out [][]byte
	for it, err := range e.Items() {
		if err != nil {
			t.Fatal(err)
		}
		if it.Depth == 0 {
			inTask = it.ContainerType() == kcdata.TypeTask
		}
		elem, _, _ := it.Elem()
		mine := inTask && it.Depth == 1 && (elem == kcdata.TypeLinuxMapStrings || elem == kcdata.TypeLinuxUserSymbol)
		if !mine && it.Type != kcdata.TypeDefinition {
			out = append(out, it.Position().Bytes())
		}
	}
	return out
}

// wantNames is what a task's addresses are called: by the better of the two.
func wantNames(old *kcdata.UserSymbolTable, b book, a kcdata.UserPlace) []kcdata.UserFunction {
	was, is := old.Functions(a), readable(b[a])
	if worth(is) > worth(was) {
		return is
	}
	return was
}

// checkRewrite: the file is what it was, and has the names; twice is once; in
// memory it is the same.
func checkRewrite(t testing.TB, plain []byte, b book) []byte {
	t.Helper()
	out, tally, err := rewrite(plain, b)
	if errors.Is(err, ErrBadTable) {
		checkBadTable(t, plain)
		return plain
	}
	if err != nil {
		t.Fatal(err)
	}
	before, after, inMemory := parse(t, plain), parse(t, out), parse(t, plain)
	was := plain
	if !bytes.Equal(out, plain) { // then in today's form
		if was, err = kcdata.Renew(plain); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := others(t, was), others(t, out); !slices.EqualFunc(a, b, bytes.Equal) {
		t.Fatalf("other items changed: %q, now %q", a, b)
	}
	if again := Names(inMemory, b); again != tally {
		t.Fatalf("in memory %+v, in the file %+v", again, tally)
	}
	fresh := 0
	for i, task := range before.Tasks {
		for _, a := range places(task) {
			want := wantNames(task.UserSymbols, b, a)
			if worth(want) > worth(task.UserSymbols.Functions(a)) {
				fresh++
			}
			for where, s := range map[string]*kcdata.Snapshot{"file": after, "memory": inMemory} {
				if d := cmp.Diff(want, s.Tasks[i].UserSymbols.Functions(a)); d != "" {
					t.Fatalf("%s: task %d place %+v (-want +got):\n%s", where, task.ID, a, d)
				}
			}
		}
		for n := range uint64(2 * maxAddr) { // of no stack: as it was
			a := kcdata.UserPlace{Addr: n / 2, Exact: n%2 == 0}
			if !slices.Contains(places(task), a) && !cmp.Equal(task.UserSymbols.Functions(a), after.Tasks[i].UserSymbols.Functions(a)) {
				t.Fatalf("task %d: place %+v, in no stack, changed: %+v, now %+v", task.ID, a, task.UserSymbols.Functions(a), after.Tasks[i].UserSymbols.Functions(a))
			}
		}
	}
	if fresh != tally.New {
		t.Fatalf("%d addresses are new, told %d", fresh, tally.New)
	}
	if d := cmp.Diff(before, after, cmpopts.IgnoreFields(kcdata.Task{}, "UserSymbols"), cmp.AllowUnexported(kcdata.SymbolTable{}),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Symbols" }, cmp.Ignore())); d != "" {
		t.Fatalf("the snapshot changed (-before +after):\n%s", d)
	}
	twice, tally, err := rewrite(out, b)
	if err != nil || !bytes.Equal(twice, out) || tally.New != 0 {
		t.Fatalf("twice: %v, %d new, bytes equal: %v", err, tally.New, bytes.Equal(twice, out))
	}
	return out
}

// checkBadTable fails unless some mapping has a path that is not there.
func checkBadTable(t testing.TB, plain []byte) {
	t.Helper()
	for _, task := range parse(t, plain).Tasks {
		for _, m := range task.Mappings {
			if m.LinuxMapping.Path != 0 && m.Path == "" {
				return
			}
		}
	}
	t.Fatal("refused for a path that is there")
}

func TestRewrite(t *testing.T) {
	testneed.Slow(t)
	refused := 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		plain := randomFile(t, r)
		if _, _, err := rewrite(plain, randomBook(r)); err != nil {
			refused++
		}
		first := checkRewrite(t, plain, randomBook(r))
		checkRewrite(t, first, randomBook(r)) // by another who knows other things
	}
	if refused > 250 {
		t.Errorf("%d of 500 files were refused: the others prove little", refused)
	}
}

// TestOneAddressTwoPlaces: where a thread stands and where another returns to, behind
// the last call of the function before, have names of their own; a record of an older
// file stands for what is not known better.
func TestOneAddressTwoPlaces(t *testing.T) {
	old := func(w kcdata.ItemWriter) error {
		return errors.Join(w.Bytes(kcdata.TypeLinuxMapStrings, []byte("\x00old\x00")),
			w.StructArray(kcdata.TypeLinuxUserSymbol, []kcdata.LinuxUserSymbol{{Addr: 5, Name: 1}, {Addr: 6, Name: 1}}))
	}
	plain := file(t, task(7, old, nothing, []uint64{5, 6}, []uint64{6, 5}))
	line := func(name string) []kcdata.UserFunction { return []kcdata.UserFunction{{Name: name, File: "x.c"}} }
	b := book{at(5): line("begins"), ret(5): line("ends"), at(6): line("begins")}
	got := parse(t, checkRewrite(t, plain, b)).Tasks[0].UserSymbols
	for p, want := range map[kcdata.UserPlace]string{at(5): "begins", ret(5): "ends", at(6): "begins", ret(6): "old"} {
		if f := got.Functions(p); len(f) != 1 || f[0].Name != want {
			t.Errorf("%+v is %+v, want %s", p, f, want)
		}
	}
}

// TestTrailingBytesStay: what stands behind the end marker is not ours.
func TestTrailingBytesStay(t *testing.T) {
	b := book{at(5): {{Name: "main"}}}
	plain := append(file(t, task(7, nothing, nothing, []uint64{5})), "trailing"...)
	out, _, err := rewrite(plain, b)
	if err != nil || !bytes.HasSuffix(out, []byte("trailing")) || len(out) <= len(plain) {
		t.Errorf("%v, %d bytes of %d, end %q", err, len(out), len(plain), out[len(out)-8:])
	}
}

// TestRewriteIsDefined: a decoder that knows nothing of Linux finds the layout of
// the records before the first of them, and of the strings.
func TestRewriteIsDefined(t *testing.T) {
	b := book{at(5): {{Name: "main", Module: "/bin/a"}}, at(6): {{Name: "run"}}}
	two := file(t, task(7, nothing, nothing, []uint64{5}), task(8, nothing, nothing, []uint64{6}))
	out, _, err := rewrite(two, b)
	if err != nil {
		t.Fatal(err)
	}
	r, err := kcdata.NewReader(out)
	if err != nil {
		t.Fatal(err)
	}
	defined, records := map[kcdata.Type]int{}, 0
	for it, err := range r.Items() {
		if err != nil {
			t.Fatal(err)
		}
		elem, _, _ := it.Elem()
		switch {
		case it.Type == kcdata.TypeDefinition:
			defined[kcdata.Type(binary.LittleEndian.Uint32(it.Data))]++
		case elem == kcdata.TypeLinuxUserSymbol, elem == kcdata.TypeLinuxMapStrings:
			if records++; defined[elem] != 1 {
				t.Errorf("%v behind %d definitions of it", elem, defined[elem])
			}
		}
	}
	if records != 4 {
		t.Errorf("%d arrays of records and strings", records)
	}
}

// TestTruncatedIsRefused: at whatever byte the file ends.
func TestTruncatedIsRefused(t *testing.T) {
	plain := file(t, task(7, randomItems(rand.New(rand.NewPCG(3, 3))), nothing, []uint64{5, 6}))
	for n := range plain {
		out, _, err := rewrite(plain[:n], book{at(5): {{Name: "main"}}})
		var format *kcdata.FormatError
		if !errors.As(err, &format) || out != nil {
			t.Fatalf("cut to %d of %d bytes: %d bytes, %v", n, len(plain), len(out), err)
		}
	}
}

// TestLongTable: a table longer than a definition can describe is an array all the same.
func TestLongTable(t *testing.T) {
	b := book{}
	stack := make([]uint64, 0, maxAddr)
	for a := range uint64(maxAddr) {
		stack = append(stack, a)
		b[kcdata.UserPlace{Addr: a, Exact: a == 0}] = []kcdata.UserFunction{{Name: string(bytes.Repeat([]byte{'a' + byte(a%26), 'A' + byte(a)}, 2000))}}
	}
	checkRewrite(t, file(t, task(7, nothing, nothing, stack)), b)
}

// FuzzRewrite: whatever the file, no panic, and what can be read stays.
func FuzzRewrite(f *testing.F) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 2))
		f.Add(randomFile(f, r), seed)
	}
	f.Fuzz(func(t *testing.T, plain []byte, seed uint64) {
		if _, err := kcdata.ParseSnapshot(plain); err != nil {
			if _, _, err := rewrite(plain, book{}); err == nil {
				t.Fatal("a damaged file was rewritten")
			}
			return
		}
		checkRewrite(t, plain, randomBook(rand.New(rand.NewPCG(seed, 9))))
	})
}
