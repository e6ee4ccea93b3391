package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"stackshot/internal/verdict"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// wait is what a thread waits for; nil: nothing, or it is not known.
func (v *view) wait(t *threadView) *waits.Wait {
	if v.o.Verdict == nil {
		return nil
	}
	return v.o.Verdict.Waits.Of[t.Thread]
}

// sameWait is equal for waits that are told in the same words.
type sameWait struct {
	kind     waits.Kind
	resource waits.Resource
	owner    *kcdata.Thread // the first
	owners   int
	mount    *kcdata.LinuxMount
}

func newSameWait(w *waits.Wait) sameWait {
	k := sameWait{kind: w.Kind, resource: w.Resource, owners: len(w.Owners)}
	if len(w.Owners) > 0 {
		k.owner = w.Owners[0].Thread
	}
	if k.mount = w.Probably; w.File != nil && w.File.Mount != nil {
		k.mount = w.File.Mount
	}
	return k
}

// maxTopics is how many other things a line says that the threads of a group wait for.
const maxTopics = 3

// waitsFor says what the threads of a group wait for, where that says more than their state
// and their stack; "" for nothing. If they wait for several things, it says what one of them waits
// for, and counts the others.
func (v *view) waitsFor(g *group) string {
	if v.words == nil {
		return ""
	}
	var first *waits.Wait
	same, topics, told := map[string]int{}, map[string]int{}, 0
	for _, t := range g.threads {
		if w := v.wait(t); verdict.Tells(w) {
			first = cmp.Or(first, w)
			same[v.words.Phrase(w)+"\x00"+v.words.Topic(w)]++
			topics[v.words.Topic(w)]++
			told++
		}
	}
	if first == nil {
		return ""
	}
	text, topic := v.words.Phrase(first), v.words.Topic(first)
	n, alike := same[text+"\x00"+topic], text == "waits for "+topic // it has no number: those of other numbers read the same
	if alike {
		n = topics[topic]
	}
	topics[topic] -= n
	told -= n
	switch {
	case n == len(g.threads):
	case alike && n > 1:
		text = fmt.Sprintf("%d wait for %s", n, topic)
	default:
		text = fmt.Sprintf("tid %d %s", first.Thread.ID, text)
		if n > 1 {
			text += fmt.Sprintf(", and so do %d more", n-1)
		}
	}
	order := slices.SortedFunc(maps.Keys(topics), func(a, b string) int { return cmp.Or(topics[b]-topics[a], cmp.Compare(a, b)) })
	for i, topic := range order {
		switch n := topics[topic]; {
		case n == 0:
		case i == maxTopics:
			return text + fmt.Sprintf(", %d more for something else", told)
		default:
			if topic == v.words.Topic(first) {
				topic = "others of this kind"
				if n == 1 {
					topic = "another of this kind"
				}
			}
			text += fmt.Sprintf(", %d more for %s", n, topic)
			told -= n
		}
	}
	return text
}

// Doing says of each thread in only what it does, in the words of its line in Text: state, since
// when, system call, what it waits for.
func Doing(s *kcdata.Snapshot, v *waitgraph.Verdict, only map[*kcdata.Thread]bool) map[*kcdata.Thread]string {
	view := newView(s, Options{ShowSelf: true, Only: only, Verdict: v})
	out := make(map[*kcdata.Thread]string, len(only))
	for _, task := range view.tasks {
		for _, g := range task.groups {
			for _, t := range g.threads {
				out[t.Thread] = view.doing(&group{threadView: t, threads: []*threadView{t}, age: t.age})
			}
		}
	}
	return out
}

// Stacks writes the threads in only as Text does: by task, those in the same state at the same
// place together. Errors: the writer's, *CutError.
func Stacks(w io.Writer, s *kcdata.Snapshot, only map[*kcdata.Thread]bool, o Options) error {
	o.ShowSelf, o.Only = true, only
	v := newView(s, o)
	l := newLines(w, o)
	for _, e := range taskEntries(v.tasks) {
		v.entryText(l, e)
	}
	return l.close()
}
