package hang

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"stackshot/internal/golden"
	"stackshot/internal/report"
	"stackshot/internal/testheap"
	"stackshot/internal/testneed"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// shapes are the ways in which n threads may wait behind a thread: parent says behind which.
var shapes = map[string]func(i int) int{
	"star":  func(int) int { return 0 },
	"chain": func(i int) int { return i - 1 },
	"tree":  func(i int) int { return (i - 1) / 3 },
	"comb":  func(i int) int { return (i - 1) &^ 1 },
}

// behind makes n threads wait behind a stopped one, and one of them last of all in a cycle.
func behind(n int, parent func(i int) int) *world {
	w := newWorld()
	t := w.task(5, "app")
	threads := make([]*kcdata.Thread, n+1)
	for i := range threads {
		threads[i] = thread(t, uint64(5+i), "app")
	}
	c := &waitgraph.Culprit{Owner: owner(t, threads[0], ""), Reason: waitgraph.Stopped}
	children := make([][]int, n+1)
	for i := 1; i <= n; i++ {
		p := parent(i)
		c.Victims = append(c.Victims, w.wait(t, threads[i], waits.UserMutex, uint64(p)+1, 9, owner(t, threads[p], waits.Holds)))
		children[p] = append(children[p], i)
	}
	type todo struct{ i, up, depth int }
	for open := []todo{{0, -1, -1}}; len(open) > 0; {
		next := open[len(open)-1]
		open = open[:len(open)-1]
		at := -1
		if next.i > 0 {
			at = len(c.Tree)
			c.Tree = append(c.Tree, waitgraph.Branch{Wait: c.Victims[next.i-1], Up: next.up, Depth: next.depth, Victim: true})
		}
		for _, child := range children[next.i] {
			open = append(open, todo{child, at, next.depth + 1})
		}
	}
	w.v.Culprits = append(w.v.Culprits, c)
	return w
}

var moreThreads = regexp.MustCompile(`(?m)^ +and (\d+) more threads?$`)

// Whatever waits behind a culprit, each thread has a line or is counted in one (H1), and there
// are few lines (H3).
func TestVictimsAreShownOrCounted(t *testing.T) {
	sizes := []int{1, 2, 8, 9, 33, 1000}
	if !testing.Short() {
		sizes = append(sizes, 100_000)
	}
	for name, parent := range shapes {
		for _, n := range sizes {
			text := written(t, "txt", behind(n, parent), Options{})
			_, section, _ := strings.Cut(text, "\n== 1. ")
			section, _, _ = strings.Cut(section, "\n== STACKS")
			got := strings.Count(section, "waits for the mutex")
			for _, m := range moreThreads.FindAllStringSubmatch(section, -1) {
				left := 0
				fmt.Sscan(m[1], &left)
				got += left
			}
			if lines := strings.Count(text, "\n"); got != n || lines > 100 {
				t.Errorf("%s of %d: %d threads shown or counted, %d lines\n%.3000s", name, n, got, lines, section)
			}
		}
	}
}

// randomTree has any shape; some of its threads only stand between.
func randomTree(r *rand.Rand, all []*waits.Wait) (tree []waitgraph.Branch) {
	for i := range r.IntN(120) {
		b := waitgraph.Branch{Wait: all[r.IntN(len(all))], Up: r.IntN(i+1) - 1, Victim: r.IntN(4) > 0}
		if r.IntN(2) == 0 && i > 0 {
			b.Up = i - 1
		}
		if b.Up >= 0 {
			b.Depth = tree[b.Up].Depth + 1
		}
		tree = append(tree, b)
	}
	return tree
}

// A tree that is cut keeps to its bounds, shows only branches whose owner it shows, and counts
// each victim that it does not.
func TestPrune(t *testing.T) {
	for seed := range uint64(500) {
		branches := randomTree(rand.New(rand.NewPCG(seed, 3)), []*waits.Wait{{}})
		want, got, lines := 0, 0, 0
		for i := range branches {
			if branches[i].Victim {
				want++
			}
		}
		p := prune(branches)
		p.walk(-1, 0, func(depth int, b *waitgraph.Branch) {
			lines++
			if b.Victim {
				got++
			}
			if b.Depth != depth {
				t.Fatalf("seed %d: depth %d at %d", seed, b.Depth, depth)
			}
		}, func(_, n int) { got += n })
		if got != want || lines > treeLines {
			t.Fatalf("seed %d: %d of %d victims shown or counted in %d lines", seed, got, want, lines)
		}
	}
}

// cycle is one deadlock of n threads, with as many behind it.
func cycle(n int) *world {
	w := newWorld()
	t := w.task(5, "app")
	for i := range uint64(2 * n) {
		thread(t, 5+i, "app")
	}
	d := &waitgraph.Deadlock{Confidence: waits.Sure}
	for i, th := range t.Threads[:n] {
		d.Cycle = append(d.Cycle, w.wait(t, th, waits.UserMutex, uint64(i)+1, 9, owner(t, t.Threads[(i+1)%n], waits.Holds)))
	}
	d.Part = d.Cycle
	for i, th := range t.Threads[n:] {
		x := w.wait(t, th, waits.UserMutex, uint64(i)+1, 9, owner(t, t.Threads[(i+1)%n], waits.Holds))
		d.Behind = append(d.Behind, x)
		d.Tree = append(d.Tree, waitgraph.Branch{Wait: x, Owner: x.Owners[0], Up: -1, Victim: true})
	}
	w.v.Deadlocks = append(w.v.Deadlocks, d)
	return w
}

// A deadlock of a hundred thousand threads with as many behind it: text and graph are short, and
// JSON is as long as it may be and says what it leaves out. It holds no document in memory.
func TestHugeDeadlock(t *testing.T) {
	testneed.Slow(t)
	const n = 100_000
	w := cycle(n)
	text, dot := written(t, "txt", w, Options{}), written(t, "dot", w, Options{})
	if max(len(text), len(dot)) > 64<<10 {
		t.Errorf("%d bytes of text, %d of the graph", len(text), len(dot))
	}
	for _, want := range []string{"Deadlock of 100000 threads", "100000 threads wait behind them", "and 99984 more threads of the deadlock", "199920 more waits not drawn"} {
		if !strings.Contains(text+dot, want) {
			t.Errorf("no %q in\n%.2000s", want, text)
		}
	}
	const most = 4 << 20
	var js bytes.Buffer
	js.Grow(2 * most)
	var err error
	testheap.Bound(t, 96<<20, "JSON", func() { err = JSON(&js, w.s, w.v, Options{MaxBytes: most}) })
	doc := decode(t, js.Bytes())
	got := len(doc.Deadlocks[0].Threads) + len(doc.Deadlocks[0].Behind)
	var cut *report.CutError
	if !errors.As(err, &cut) || cut.Threads != doc.ThreadsLeftOut+doc.WaitsLeftOut+doc.FindingsLeftOut {
		t.Errorf("%v", err)
	}
	if js.Len() < most || js.Len() > most+most/8 || got == 0 || got+doc.ThreadsLeftOut != 2*n || len(doc.Waits)+doc.WaitsLeftOut != 2*n {
		t.Errorf("%d bytes, %d threads and %d left out, %d waits and %d left out", js.Len(), got, doc.ThreadsLeftOut, len(doc.Waits), doc.WaitsLeftOut)
	}
}

func TestWriteErrorsComeBack(t *testing.T) {
	w := everything()
	for form, write := range forms {
		golden.ErrorsComeBack(t, form, func(out io.Writer) error { return write(out, w.s, w.v, Options{}) })
	}
}
