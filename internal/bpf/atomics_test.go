package bpf

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"stackshot/internal/testneed"
)

// Every atomic of every program, by the function it stands in: what it does to which
// word. An atomic that is not here has no place in the window until somebody has
// thought about its order, and about who else wants the line.
var atomicsOf = map[string]string{
	// The producer publishes, idle consumers read by plain loads, who claims swaps.
	"queue_push":  "exchange tail",
	"census":      "exchange populated",
	"claim_from":  "compare-and-swap head; observe head; observe tail",
	"queue_claim": "observe populated",
	// Memory.
	"bump":       "compare-and-swap used",
	"arena_lock": "compare-and-swap lock",
	"take":       "exchange lock",
	"push_tail":  "exchange lock; fetch-add busy; fetch-add freed; fetch-add frees",
	"next_chunk": "fetch-add allocs; fetch-add allocs; fetch-add foreign; fetch-add refused; fetch-add spill; fetch-add spilled",
	// The stop. Every change of the word is a swap of the whole.
	"stop_arrive":   "compare-and-swap word",
	"stop_expire":   "compare-and-swap word",
	"stop_hold":     "compare-and-swap word",
	"stop_finish":   "compare-and-swap word",
	"stop_release":  "compare-and-swap word",
	"stop_no_space": "compare-and-swap word",
	"trap":          "exchange over; fetch-add verified; observe over; observe word; observe word; observe word", // each once
	"verify":        "fetch-add verify_next",
	"list_threads":  "fetch-add seconds",
	"end_piece":     "fetch-add pieces",
	// The walk of a panic: whoever swaps the state has the region.
	"take_region":   "compare-and-swap state; compare-and-swap state",
	"count_up":      "fetch-add counted",
	"note_progress": "exchange bytes",
	"end_walk":      "exchange state",
	"end_stop":      "compare-and-swap word",
	// The sampler.
	"sample": "compare-and-swap wanted; exchange wanted",
}

// Where the words lie in their structures, and the document that says how they are
// ordered.
var atomicWords = map[string]struct {
	at  int16
	doc string
}{
	"tail": {0, "workqueue"}, "head": {128, "workqueue"}, "populated": {256, "workqueue"},
	"used": {128, "bumpalloc"}, "spilled": {136, "bumpalloc"}, "lock": {256, "bumpalloc"},
	"allocs": {384, "bumpalloc"}, "frees": {392, "bumpalloc"}, "freed": {400, "bumpalloc"}, "spill": {408, "bumpalloc"},
	"foreign": {416, "bumpalloc"}, "busy": {424, "bumpalloc"}, "refused": {432, "bumpalloc"},
	"word": {}, "pieces": {at: 256}, "verify_next": {at: 384}, "seconds": {at: 388}, "verified": {at: 392}, "over": {at: 396},
	"wanted": {}, "state": {}, "counted": {}, "bytes": {at: 184},
}

// The committed objects, of both architectures, have the atomics that the documents
// promise and no others: none without a result, which orders nothing, and no or, and
// or xor, which on x86 is a loop that asks no clock.
func TestAtomicsAreWhatTheDocumentsPromise(t *testing.T) {
	testneed.Live(t)
	objects, err := filepath.Glob("*_bpfel.o")
	if err != nil || len(objects) < 8 {
		t.Fatal(objects, err)
	}
	seen := map[string]bool{}
	for _, object := range objects {
		spec, err := ebpf.LoadCollectionSpec(object)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range spec.Programs {
			for fn, got := range atomicsIn(p.Instructions) {
				seen[fn] = true
				if want := strings.Split(atomicsOf[fn], "; "); !slices.Equal(got, atomicsAt(t, want)) {
					t.Errorf("%s, %s: %q, want %q", object, fn, got, want)
				}
			}
		}
	}
	for fn := range atomicsOf {
		if !seen[fn] {
			t.Errorf("%s: no object has an atomic there", fn)
		}
	}
}

// atomicsIn tells, for each function, what its atomics do at which offset.
func atomicsIn(list asm.Instructions) map[string][]string {
	found, fn := map[string][]string{}, ""
	for i := range list {
		ins := &list[i]
		if f := btf.FuncMetadata(ins); f != nil {
			fn = f.Name
		}
		op := ins.OpCode.AtomicOp()
		if op == asm.InvalidAtomic {
			continue
		}
		does, ok := map[asm.AtomicOp]string{asm.Xchg: "exchange", asm.CmpXchg: "compare-and-swap", asm.FetchAdd: "fetch-add"}[op]
		if !ok {
			does = op.String()
		}
		if op == asm.FetchAdd && i > 0 && list[i-1].OpCode.ALUOp() == asm.Mov && list[i-1].Dst == ins.Src && list[i-1].Constant == 0 && list[i-1].OpCode.Source() == asm.ImmSource {
			does = "observe"
		}
		found[fn] = append(found[fn], fmt.Sprint(does, " +", ins.Offset))
	}
	for fn := range found {
		slices.Sort(found[fn])
	}
	return found
}

// atomicsAt puts offsets for names.
func atomicsAt(t *testing.T, sites []string) (out []string) {
	t.Helper()
	for _, site := range sites {
		does, name, _ := strings.Cut(site, " ")
		word, ok := atomicWords[name]
		if !ok {
			continue // an unlisted function
		}
		out = append(out, fmt.Sprint(does, " +", word.at))
	}
	slices.Sort(out)
	return out
}

// The table above and the documents say the same: a word that is exchanged is one
// that its document has ordered by an exchange, and so on.
func TestDocumentsOrderTheWordsSo(t *testing.T) {
	for _, fn := range slices.Sorted(maps.Keys(atomicsOf)) {
		for site := range strings.SplitSeq(atomicsOf[fn], "; ") {
			does, name, _ := strings.Cut(site, " ")
			doc := atomicWords[name].doc
			if doc == "" || name == "spilled" || doc == "bumpalloc" && does == "fetch-add" {
				continue // a count: it orders nothing
			}
			text, err := os.ReadFile("../../" + doc + "/doc.go")
			if err != nil {
				t.Fatal(err)
			}
			rule := `(?m)^//\t` + name + ` .*` + does
			if does == "observe" {
				rule = `(?s)observes?\b[^.]*\b` + name + `\b`
			}
			if !regexp.MustCompile(rule).Match(text) {
				t.Errorf("%s: %s, of which %s/doc.go says nothing", fn, site, doc)
			}
		}
	}
}
