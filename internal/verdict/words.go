package verdict

import (
	"fmt"
	"strings"

	"stackshot/internal/show"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// Kind names a kind in a table.
func Kind(k waits.Kind) string { return show.Clean(k.Words()) }

// thing is what is waited for: by its number if it has one ("the kernel mutex 0x5570"), else in
// the words of its kind ("a kernel mutex"). redacted: the numbers are no addresses.
func thing(k waits.Kind, r waits.Resource, redacted bool) string {
	words, use, _ := strings.Cut(show.Clean(k.Words()), ", ") // "an rwsem of the kernel, to read"
	if use != "" {
		use = " (" + use + ")"
	}
	article, noun, _ := strings.Cut(words, " ")
	if end := ends[k]; end != "" && r.ID != 0 {
		article, noun = "a", end
	}
	if article != "a" && article != "an" {
		return words + use
	}
	if lock, ok := strings.CutSuffix(noun, " of the kernel"); ok {
		article, noun = "a", "kernel "+lock
	}
	switch {
	case r.ID == 0 || k == waits.FUSE: // a device, which says less than the mount
		return article + " " + noun + use
	case redacted:
		return fmt.Sprintf("the %s number %d%s", noun, r.ID, use)
	}
	return fmt.Sprintf("the %s %#x%s", noun, r.ID, use)
}

// thingOf is what w's thread waits for, if no file of its call tells: with a guess where that is.
func thingOf(w *waits.Wait, redacted bool) string {
	if w.Probably != nil && !redacted {
		return "a frozen file system, probably " + mounted(&waits.Wait{File: &waits.OpenFile{Mount: w.Probably}}, "", false)
	}
	return thing(w.Kind, w.Resource, redacted)
}

// ends name the files of which others have the other ends.
var ends = map[waits.Kind]string{waits.Pipe: "pipe", waits.Socket: "socket", waits.Poll: "file", waits.Descriptor: "file"}

// evidence says where an edge comes from.
var evidence = map[waits.Evidence]string{
	waits.Field: "by the kernel's own field",
	waits.Scan:  "found on its kernel stack",
	waits.Word:  "by the words in its memory",
	waits.File:  "by the open file",
	waits.After: "read after the release",
	waits.Stack: "by the functions on its stack",
}

// Evidence says in plain words where a wait comes from, and what it is worth.
func Evidence(w *waits.Wait) string {
	var parts show.Parts
	parts.Add("%s", evidence[w.Evidence])
	parts.If(w.Confidence == waits.Likely, "probably")
	parts.If(w.When == waits.NotAtOne, "nothing was stopped")
	parts.If(w.When == waits.Later && w.Evidence != waits.After, "read after the release")
	return parts.Join(", ")
}

// Why says why a thread does not go on: "is stopped by a signal".
func Why(r waitgraph.Reason) string { return reasons[r] }

// reasons say why a culprit does not go on; "" with a Wait: that says it.
var reasons = map[waitgraph.Reason]string{
	waitgraph.Running:   "is running",
	waitgraph.Runnable:  "waits for a CPU",
	waitgraph.InD:       "is in uninterruptible sleep (D)",
	waitgraph.Stopped:   "is stopped by a signal",
	waitgraph.Traced:    "is stopped by its tracer",
	waitgraph.Frozen:    "is frozen",
	waitgraph.Dead:      "died with the lock held",
	waitgraph.Asleep:    "is asleep",
	waitgraph.Outside:   "is not in this file",
	waitgraph.MissedCPU: "ran on a CPU that did not come to the stop",
}
