package waits

import (
	"os"
	"strings"
	"testing"
)

// example is a line of testdata/stacks.txt.
type example struct {
	kind   Kind
	where  string
	frames []string
}

func examples(t *testing.T) (out []example) {
	t.Helper()
	text, err := os.ReadFile("testdata/stacks.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		head, stack, ok := strings.Cut(line, ": ")
		f := strings.Fields(head)
		if !ok || len(f) != 2 {
			t.Fatalf("no example: %q", line)
		}
		out = append(out, example{Kind(f[0]), f[1], strings.Fields(stack)})
	}
	return out
}

func marksOfAll(frames []string) (out []*marks) {
	for _, f := range frames {
		if m := marksOf(f); len(out) > 0 || !m.helper {
			out = append(out, m)
		}
	}
	return out
}

// Stacks of real machines are of the kind that they are of, each row of the table has one, and
// no stack of the list gets its kind from a row that has no business with it.
func TestRealStacks(t *testing.T) {
	used := make([]bool, len(table))
	for _, e := range examples(t) {
		kind := Other
		i := rowOf(marksOfAll(e.frames))
		if i >= 0 {
			kind, used[i] = table[i].kind, true
		}
		if kind != e.kind {
			t.Errorf("%s %s: row %d, %s; want %s", e.where, strings.Join(e.frames, " "), i, kind, e.kind)
		}
	}
	for i, u := range used {
		if !u {
			t.Errorf("row %d has no example: %s %.60s", i, table[i].kind, table[i].leaf)
		}
	}
}

// Every kind has words of its own, every row a kind, and the table fits.
func TestKindsHaveWords(t *testing.T) {
	words := map[string]Kind{}
	for k, f := range kinds {
		if f.words == "" || words[f.words] != "" {
			t.Errorf("%s: words %q, as %q", k, f.words, words[f.words])
		}
		words[f.words] = k
	}
	for i, r := range table {
		if _, ok := kinds[r.kind]; !ok || r.leaf == "" && r.within == "" {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	for _, r := range userTable {
		if _, ok := kinds[r.kind]; !ok {
			t.Errorf("user row %+v", r)
		}
	}
	if len(table) > maxRows {
		t.Errorf("%d rows, of at most %d", len(table), maxRows)
	}
	if !AtRest.Rest() || Mutex.Rest() || Kind("x").Rest() || Kind("x").Words() != Other.Words() {
		t.Error("rest, or the words of no kind")
	}
}

// What stands in one row's leaf column stands in no earlier row that would always win.
func TestRowsCanWin(t *testing.T) {
	for i, r := range table {
		won := false
		for _, leaf := range strings.Fields(r.leaf) {
			leaf = strings.TrimSuffix(leaf, "*")
			for _, within := range append(strings.Fields(r.within), leaf) {
				won = won || rowOf(marksOfAll([]string{leaf, strings.TrimSuffix(within, "*")})) == i
			}
		}
		if r.leaf != "" && !won {
			t.Errorf("row %d (%s) never counts", i, r.kind)
		}
	}
}

// User stacks name what a futex call waits for, by the first frame that tells.
func TestUserFunctions(t *testing.T) {
	for name, want := range map[string]Kind{
		"pthread_cond_wait@@GLIBC_2.3.2": UserCondvar, "__pthread_cond_wait_common": UserCondvar,
		"std::condition_variable::wait(std::unique_lock<std::mutex>&)":   UserCondvar,
		"std::sys::sync::condvar::futex::Condvar::wait_optional_timeout": UserCondvar,
		"do_futex_wait.constprop.0":                                      UserSemaphore, "__new_sem_wait_slow64.constprop.0": UserSemaphore,
		"pthread_barrier_wait": UserBarrier, "__pthread_clockjoin_ex": UserJoin,
		"__GI___pthread_mutex_lock": Futex, "___pthread_mutex_lock": UserMutex, "__lll_lock_wait": UserMutex,
		"pthread_rwlock_wrlock": UserRWLock, "runtime.futex": GoRuntime, "runtime.futex.abi0": GoRuntime, "runtime.notesleep": GoRuntime,
		"<std::sys::sync::mutex::futex::Mutex>::lock_contended": RustLock, "std::sys::sync::mutex::futex::Mutex::lock_contended": RustLock, "std::sys::pal::unix::futex::futex_wait": Futex,
		"std::thread::park": UserPark, "std::sys::sync::thread_parking::futex::Parker::park": UserPark,
		"ObjectMonitor::enter_internal(JavaThread*)": JavaMonitor, "Unsafe_Park": JavaMonitor,
		"main.main": Futex, "my_pthread_cond_wait": Futex, "": Futex,
	} {
		if got, ok := userFunction(name); got != want || ok != (want != Futex) {
			t.Errorf("%q: %s, %v; want %s", name, got, ok, want)
		}
	}
}
