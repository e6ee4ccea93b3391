package hang

import (
	"strings"
	"testing"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// frozen: a hundred programs write to a file system that is frozen, and nobody waits for them. The
// verdict is waitgraph's.
func frozen() *world {
	w := newWorld()
	mount := &kcdata.LinuxMount{Dev: 7 << 20}
	copy(mount.Point[:], "/mnt/data")
	copy(mount.FSType[:], "ext4")
	copy(mount.Source[:], "/dev/loop0")
	for i := range uint64(100) {
		t := w.single(2000+i, "touch")
		inState(t, kcdata.StateUninterruptible)
		x := w.wait(t, t.Threads[0], waits.FSFreeze, 0, 192-i)
		x.State = model.StateOf(x.Thread)
		at(x, kcdata.FileRegular, kcdata.FileOpWrite, 0).Mount = mount
	}
	w.v = waitgraph.Judge(w.v.Waits, waitgraph.Options{})
	return w
}

// All forms tell of a hundred threads in D at one place as of one finding; JSON has each of them.
func TestTogether(t *testing.T) {
	w := frozen()
	const sentence = "100 threads are in uninterruptible sleep (D) and wait for /mnt/data (ext4, /dev/loop0, frozen): " +
		"touch [2000], touch [2001] and 98 more. The longest, tid 2000, has waited for up to 3m 12s."
	text := written(t, "txt", w, Options{})
	for _, want := range []string{
		"\n" + sentence + "\n\n== 1. 100 threads wait in D for /mnt/data (ext4, /dev/loop0, frozen)\n  touch [2000], for up to 3m 12s (read after the release)\n",
		"\n  touch [2007], for up to 3m 05s (", "\n  and 92 more threads\n\n== STACKS of the threads that matter: 1\n",
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("not once %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "== 2.") || strings.Count(text, "\n") > 30 {
		t.Errorf("more than one finding:\n%s", text)
	}

	doc, _ := jsonOf(t, w, Options{})
	if len(doc.Verdict) != 1 || doc.Verdict[0] != sentence || !doc.Hangs || len(doc.Culprits) != 100 {
		t.Errorf("%q, hangs %v, %d culprits", doc.Verdict, doc.Hangs, len(doc.Culprits))
	}
	for i, c := range doc.Culprits {
		if c.Tid != 2000+i || (c.ToldWith == nil) != (i == 0) || c.ToldWith != nil && *c.ToldWith != 2000 {
			t.Errorf("%d: %+v", i, c)
		}
	}

	dot := written(t, "dot", w, Options{})
	if strings.Count(dot, "shape=ellipse") != 1 || strings.Count(dot, " -> p0 ") != maxDotWaits || !strings.Contains(dot, `60 more waits not drawn`) || strings.Contains(dot, "more finding") {
		t.Errorf("%s", dot)
	}
}

// Who asks for one of them sees it first, with the whole finding.
func TestTogetherAskedFor(t *testing.T) {
	w := frozen()
	text := written(t, "txt", w, Options{Only: w.of(2050)})
	for _, want := range []string{"\n100 threads are in ", "\n== 1. 100 threads wait in D for /mnt/data (ext4, /dev/loop0, frozen)\n  touch [2050], for", "\n  and 92 more threads\n", "matter: 2\n"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("not once %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "findings of other threads") {
		t.Errorf("it counts others:\n%s", text)
	}
	if doc, _ := jsonOf(t, w, Options{Only: w.of(2050)}); len(doc.Culprits) != 1 || len(doc.Verdict) != 1 || *doc.Culprits[0].ToldWith != 2000 {
		t.Errorf("%+v", doc)
	}
}

// A narrow terminal loses no word of a sentence or a name.
func TestNoWordIsLost(t *testing.T) {
	for _, build := range []func() *world{everything, ends, frozen} {
		wide, narrow := written(t, "txt", build(), Options{}), written(t, "txt", build(), Options{Width: 60})
		if got, want := strings.Join(strings.Fields(narrow), " "), strings.Join(strings.Fields(wide), " "); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		for line := range strings.Lines(narrow) {
			if show.Cells(strings.TrimSuffix(line, "\n")) > 60 {
				t.Errorf("%q", line)
			}
		}
	}
}
