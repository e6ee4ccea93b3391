package report

import (
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// chainText is the note on a stack for which no unwind table was used.
const chainText = "by frame pointers alone: callers may be missing"

// guessText is the note on a stack in which the unwinder followed a frame pointer without
// proof that it is the function's own, or code that is about to jump to another place.
const guessText = "in part a guess: callers may be missing"

// missedText is the note on a stack that lacks an unwind table, wherever it ended.
const missedText = "an unwind table was not read"

// chainOnly reports whether a user stack is only a frame-pointer chain. In such a chain a
// leaf function without a frame hides its caller.
func chainOnly(t *kcdata.Thread) bool {
	return len(t.User) > 0 && (t.UserWalk == nil || t.UserWalk.Flags&kcdata.UserUnwound == 0)
}

// allChainOnly reports whether a file has user stacks and all are chains: then the header
// says so once.
func allChainOnly(s *kcdata.Snapshot) bool {
	found := false
	for _, task := range s.Tasks {
		for _, t := range task.Threads {
			if len(t.User) > 0 && !chainOnly(t) {
				return false
			}
			found = found || len(t.User) > 0
		}
	}
	return found
}

// userNotes say why a thread has no user stack, or what the stack lacks, in one short
// sentence each. A stack that reached its outermost frame lacks nothing, unless the
// unwinder may have skipped callers on the way.
func userNotes(t *kcdata.Thread) []string {
	var out show.Parts
	w, some := t.UserWalk, len(t.User) > 0
	if w == nil {
		out.If(chainOnly(t), "user stack %s", chainText)
		return out
	}
	has := func(flags uint32) bool { return w.Flags&flags == flags }
	if has(kcdata.UserCompat) {
		return []string{"no user stack: a 32-bit thread"}
	}
	if has(kcdata.UserNoMemory) {
		return []string{"no user stack: its memory is gone, it is exiting"}
	}
	if has(kcdata.UserMoved) {
		return []string{"no user stack: the thread ran on while it was read"}
	}
	out.If(some && has(kcdata.UserTruncated), "user stack cut after %s: it is deeper", show.Count(len(t.User), "frame"))
	out.If(some && has(kcdata.UserComplete|kcdata.UserTablesMissed), "user stack: callers may be missing: %s", missedText)
	if !has(kcdata.UserComplete) {
		what := "no user stack"
		if some {
			what = "user stack incomplete"
		}
		for _, why := range endNotes(w.Flags) {
			out.Add("%s: %s", what, why)
		}
	}
	out.If(chainOnly(t), "user stack %s", chainText)
	out.If(some && has(kcdata.UserCallersUnsure) && !chainOnly(t), "user stack %s", guessText)
	out.If(has(kcdata.UserNoLoadInfo), "no load information: its mappings could not be read")
	return out
}

// endNotes say why a walk ended before the outermost frame.
func endNotes(flags uint32) []string {
	var out []string
	const behind = kcdata.UserNoMoreBytes | kcdata.UserNoUnwindTable | kcdata.UserNoMapping | kcdata.UserAltStack | kcdata.UserTablesMissed | kcdata.UserNoRegister
	if flags&kcdata.UserUnwound != 0 && flags&behind != 0 {
		flags &^= kcdata.UserNoPage // it ended the frame-pointer chain of the stop, not the unwinding
	}
	for _, n := range []struct {
		flag uint32
		text string
	}{
		{kcdata.UserPagedOut, "a page of it is paged out"},
		{kcdata.UserNoPage, "it leads to memory that was never written to, or is not there"},
		{kcdata.UserRefused, "it leads to what is not ordinary memory"},
		{kcdata.UserNoRegister, "a register that it needs is not known without stopping the thread"},
		{kcdata.UserNoMoreBytes, "no more of it was copied"},
		{kcdata.UserNoUnwindTable, "it leads into code without unwind information"},
		{kcdata.UserNoMapping, "it leads to an address in no executable mapping"},
		{kcdata.UserAltStack, "its stack pointer is in no stack that is known"},
		{kcdata.UserTablesMissed, missedText},
	} {
		if flags&n.flag != 0 {
			out = append(out, n.text)
		}
	}
	// Other notes explain why a chain and a cut stack end.
	const told = kcdata.UserUnwound | kcdata.UserTruncated
	if len(out) == 0 && flags&told == kcdata.UserUnwound {
		out = append(out, "its outermost frame was not reached")
	}
	return out
}
