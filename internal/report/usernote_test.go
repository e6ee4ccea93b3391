package report

import (
	"os"
	"slices"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// TestUserNotes goes through all combinations of flags.
func TestUserNotes(t *testing.T) {
	doc, err := os.ReadFile("../../docs/user-stacks.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for flags := range uint32(1 << 18) {
		th := &kcdata.Thread{User: make([]uint64, 256), UserWalk: &kcdata.LinuxUserWalk{Flags: flags}}
		notes := userNotes(th)
		has := func(bits uint32) bool { return flags&bits != 0 }
		says := func(words string) bool {
			return slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, words) })
		}
		for _, n := range notes {
			seen[n] = true
		}
		gone := has(kcdata.UserCompat | kcdata.UserNoMemory)
		switch {
		case gone && (len(notes) != 1 || !says("no user stack")):
			t.Fatalf("flags %#x, no stack to speak of: %q", flags, notes)
		case gone:
		case has(kcdata.UserUnwound) == says(chainText), (has(kcdata.UserUnwound) && has(kcdata.UserCallersUnsure)) != says(guessText):
			t.Fatalf("flags %#x: %q", flags, notes)
		case has(kcdata.UserTruncated) != says("cut after 256 frames"):
			t.Fatalf("flags %#x: %q", flags, notes)
		case has(kcdata.UserTablesMissed) != says(missedText):
			t.Fatalf("flags %#x: %q", flags, notes)
		case has(kcdata.UserComplete) && says("incomplete"):
			t.Fatalf("flags %#x, complete: %q", flags, notes)
		case !has(kcdata.UserComplete) && len(notes) == 0:
			t.Fatalf("flags %#x: nothing said of a stack whose end was not reached", flags)
		}
		th.User = nil
		for _, n := range userNotes(th) {
			if strings.Contains(n, "incomplete") || strings.Contains(n, "callers") {
				t.Fatalf("flags %#x: %q of a stack that is not there", flags, n)
			}
		}
	}
	for n := range seen {
		_, why, ok := strings.Cut(n, "incomplete: ")
		if !ok {
			why = strings.TrimPrefix(strings.TrimPrefix(n, "user stack: "), "user stack ")
		}
		if !strings.Contains(string(doc), strings.TrimSpace(why)) {
			t.Errorf("docs/user-stacks.md does not mention %q", n)
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d notes: %v", len(seen), seen)
	}
}

// TestChainsAreSaidOnce: in a file of chains alone the text says so once, at the
// top; JSON says it of every thread.
func TestChainsAreSaidOnce(t *testing.T) {
	if a, b := strings.Count(textOf(t, framePointers(), Options{}), chainText), strings.Count(string(jsonOf(t, framePointers(), Options{})), chainText); a != 1 || b != 3 {
		t.Errorf("said %d times in text, %d times in JSON of 3 threads", a, b)
	}
}

// TestDeepStacks: a recursion is folded, anything else that is too deep is shown
// by both ends, and the lines account for every frame.
func TestDeepStacks(t *testing.T) {
	frames := func(period, n int) []*userFrame {
		out := make([]*userFrame, n)
		for i := range out {
			out[i] = &userFrame{id: uint32(i % period), UserFunction: kcdata.UserFunction{Name: "f"}}
		}
		return out
	}
	for _, c := range []struct{ period, n, lines int }{
		{1, 256, 2}, {2, 256, 3}, {3, 256, 5}, {4, 256, 5}, {5, 120, 120}, {5, 256, innerLines + 1 + outerLines}, {1, 8, 8}, {1, 9, 2}, {2, 3, 3},
	} {
		var b strings.Builder
		l := newLines(&b, Options{})
		userText(l, frames(c.period, c.n))
		if err := l.close(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(b.String(), "\n"); got != c.lines {
			t.Errorf("%d frames of period %d: %d lines, want %d\n%s", c.n, c.period, got, c.lines, b.String())
		}
		if c.lines == innerLines+1+outerLines && !strings.Contains(b.String(), "... 136 more lines") {
			t.Errorf("%d frames: hidden lines are not counted:\n%s", c.n, b.String())
		}
	}
}

// TestProfilesSayWhatStacksLack: a thread's label says so if the text does.
func TestProfilesSayWhatStacksLack(t *testing.T) {
	p, err := newProfile(newView(userStacks(), Options{}))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range p.Sample {
		got[s.Label["thread"][0]] = strings.Join(s.Label["user_stack"], ",")
	}
	for thread, want := range map[string]string{
		"unsure": "callers_may_be_missing", "chain": "callers_may_be_missing", "paged": "incomplete", "nowhere": "incomplete",
		"deep": "incomplete", "server": "", "burn": "", "exiting": "",
	} {
		if got[thread] != want {
			t.Errorf("%s: %q, want %q", thread, got[thread], want)
		}
	}
}

// Of a thread that was not stopped: that it ran on, or that a register is not known.
func TestNotesWithoutStop(t *testing.T) {
	for flags, want := range map[uint32]string{
		kcdata.UserFewRegisters | kcdata.UserMoved:                           "no user stack: the thread ran on while it was read",
		kcdata.UserFewRegisters | kcdata.UserUnwound | kcdata.UserNoRegister: "no user stack: a register that it needs is not known without stopping the thread",
		kcdata.UserFewRegisters | kcdata.UserNoMemory:                        "no user stack: its memory is gone, it is exiting",
	} {
		got := userNotes(&kcdata.Thread{UserWalk: &kcdata.LinuxUserWalk{Flags: flags}})
		if len(got) != 1 || got[0] != want {
			t.Errorf("flags %#x: %q, want %q", flags, got, want)
		}
	}
}
