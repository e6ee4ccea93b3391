package report

import (
	"cmp"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/verdict"
	"stackshot/internal/waits"
)

func cgroupTitle(path string) string {
	if path == "" {
		return "CONTROL GROUP NOT IN THE FILE"
	}
	return "CONTROL GROUP " + show.Clean(path)
}

// waitClass is equal for threads that stand in one section by what they wait for. For threads
// of which that is not known it has the class, which is otherwise that of all.
type waitClass struct {
	sameWait
	words string // that tell it
	known bool
	class model.Class
}

func (v *view) waitClass(t *threadView) waitClass {
	w := v.wait(t)
	if w == nil || v.words == nil {
		return waitClass{class: t.state.Class}
	}
	key := waitClass{words: cmp.Or(v.words.Phrase(w), "waits for "+w.Kind.Words()), known: true}
	if len(w.Owners) > 0 {
		key.sameWait = newSameWait(w) // two locks of one owner may be told in the same words
	}
	return key
}

// byWait has a section for each thing that is waited for: first what is a certain thing or has an
// owner, then the kinds of waits, then what does not wait, or nobody knows for what.
func (v *view) byWait() []*part {
	index := map[waitClass]int{}
	var lists [3][]*part
	threads := map[*part][]*threadView{}
	for _, t := range v.threads() {
		key := v.waitClass(t)
		rank := waitRank(v.wait(t), key)
		at, found := index[key]
		if !found {
			at = len(lists[rank])
			index[key] = at
			lists[rank] = append(lists[rank], &part{title: key.title()})
		}
		p := lists[rank][at]
		threads[p] = append(threads[p], t)
	}
	var out []*part
	for _, parts := range lists {
		for _, p := range parts {
			p.entries = groupEntries(groupThreads(threads[p], v.fullKey))
			v.sort(p.entries)
		}
		v.sortParts(parts)
		out = append(out, parts...)
	}
	if alone := withoutThreads(v.tasks); len(alone) > 0 {
		v.sort(alone)
		out = append(out, &part{title: "NO THREADS IN THE FILE", entries: alone})
	}
	return out
}

func waitRank(w *waits.Wait, key waitClass) int {
	switch {
	case !key.known:
		return 2
	case verdict.Tells(w):
		return 0
	}
	return 1
}

// title says what the threads of a section wait for.
func (w waitClass) title() string {
	switch {
	case w.known:
		return w.words
	case w.class == model.Sleeping || w.class == model.Blocked:
		return w.class.Many() + ", for what is not known"
	}
	return w.class.Many()
}
