package verdict

import (
	"fmt"

	"stackshot/internal/show"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// SummaryLines is how many sentences Summary has at most.
const SummaryLines = 3

// Words are those for one snapshot and the verdict on it.
type Words struct {
	v        *waitgraph.Verdict
	redacted bool
	blind    string
	culprits map[*waits.Wait]*waitgraph.Culprit // by victim; nil: nobody has asked
	held     map[*kcdata.Task]waitgraph.Reason  // of those that were asked for
}

// For gives the words for v, which is the verdict on s.
func For(s *kcdata.Snapshot, v *waitgraph.Verdict) *Words {
	return &Words{v: v, held: map[*kcdata.Task]waitgraph.Reason{}, redacted: s.HasMachine && s.Machine.Redacted != 0, blind: blind(s, v)}
}

func blind(s *kcdata.Snapshot, v *waitgraph.Verdict) string {
	switch {
	case s.Partial:
		return "this file was not read whole"
	case s.OtherKernel():
		return "this file is of another kernel than Linux"
	case v.Waits != nil && v.Waits.Unrecorded:
		return "this file does not say what threads wait for"
	}
	return ""
}

// Phrase says what a thread waits for.
func (x *Words) Phrase(w *waits.Wait) string { return Phrase(w, x.redacted) }

// Thing says what a thread waits for, without who can end that.
func (x *Words) Thing(w *waits.Wait) string {
	if w.File != nil && w.File.File != nil && w.Kind.AtFileSystem() && tellsFile(w) {
		return "waits for " + mounted(w, "", x.redacted)
	}
	return "waits for " + thingOf(w, x.redacted)
}

// Resource names what is waited for.
func (x *Words) Resource(r waits.Resource) string { return thing(r.Kind, r, x.redacted) }

// Summary is the verdict in at most SummaryLines sentences, of which the first is the worst
// finding. Without findings it is one sentence. rest says where the findings are that have no
// sentence.
func (x *Words) Summary(findings []Finding, rest string) (out []string) {
	if len(findings) == 0 {
		return []string{x.Nothing()}
	}
	shown := InSummary(findings)
	for _, f := range findings[:shown] {
		out = append(out, x.Sentence(f))
	}
	if more := len(findings) - shown; more > 0 {
		out = append(out, fmt.Sprintf("And %s: %s.", show.Count(more, "more finding"), rest))
	}
	return out
}

// InSummary is how many of the findings, from the first on, Summary has sentences for.
func InSummary(findings []Finding) int {
	if n := len(findings); n <= SummaryLines {
		return n
	}
	return SummaryLines - 1
}

// Knows reports whether the file says what threads wait for.
func (x *Words) Knows() bool { return x.v.Waits == nil || !x.v.Waits.Unrecorded }

// Blind is why a verdict without findings says nothing; "": it says that nothing hangs.
func (x *Words) Blind() string { return x.blind }

// Nothing is the sentence of a verdict without findings.
func (x *Words) Nothing() string {
	switch {
	case x.blind != "":
		return "Nothing is known to hang: " + x.blind + "."
	case !x.v.Waits.OneInstant:
		return "Nothing hangs, as far as a file can tell that is not of one instant: no deadlock, nobody whom others wait for too long, no convoy."
	}
	return "Nothing hangs: no deadlock, nobody whom others wait for too long, no convoy."
}
