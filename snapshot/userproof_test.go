//go:build linux

package snapshot

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"stackshot/internal/foreign"
	"stackshot/internal/symbol"
	"stackshot/internal/symbolize"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

// The proofs of user stacks go the way that a reader of the file goes: the whole
// file, names by what `report` asks for names, nothing of our own insides.

// proof is one capture, read back and named.
type proof struct {
	*kcdata.Snapshot
	file    []byte
	skipped []symbol.Skip
}

func prove(tb testing.TB, o Options, pids []int) *proof {
	tb.Helper()
	if o.ArrivalBudget == 0 {
		o.ArrivalBudget = time.Second
	}
	_, snap, file := takeWhole(tb, o, Request{Pids: pids})
	return named(tb, snap, file)
}

func named(tb testing.TB, snap *kcdata.Snapshot, file []byte) *proof {
	tb.Helper()
	files := foreign.New(foreign.Options{})
	defer files.Close()
	res := symbol.NewResolver(files, symbol.Options{Local: true, Lines: true, Limit: slow(time.Minute)}).Resolve(tb.Context(), snap.Tasks)
	symbolize.Names(snap, tables(res))
	return &proof{snap, bytes.Clone(file), res.Skipped}
}

// tables is a symbolize.Namer.
func tables(res *symbol.Result) namer {
	n := namer{}
	for t, found := range res.Tasks {
		n[t] = found
	}
	return n
}

type namer map[*kcdata.Task]*kcdata.UserSymbolTable

func (n namer) Names(t *kcdata.Task, places []kcdata.UserPlace) [][]kcdata.UserFunction {
	out := make([][]kcdata.UserFunction, len(places))
	for i, p := range places {
		out[i] = n[t].Functions(p)
	}
	return out
}

// thread finds one, with its task.
func (p *proof) thread(tb testing.TB, tid int) (*kcdata.Task, *kcdata.Thread) {
	tb.Helper()
	for _, task := range p.Tasks {
		for _, th := range task.Threads {
			if th.ID == uint64(tid) {
				return task, th
			}
		}
	}
	tb.Fatalf("thread %d is not in the file", tid)
	return nil, nil
}

// frames is a thread's user stack as the judge wants it, inlined functions too.
func frames(task *kcdata.Task, th *kcdata.Thread) []userlab.Frame {
	var out []userlab.Frame
	for i, pc := range th.User {
		funcs := task.UserSymbols.Functions(th.UserPlace(i))
		if len(funcs) == 0 {
			out = append(out, userlab.Frame{PC: pc, Offset: userlab.UnknownOffset})
		}
		for i, f := range funcs {
			out = append(out, userlab.Frame{PC: pc, Func: f.Name, Offset: int64(f.Offset), Inline: i < len(funcs)-1})
		}
	}
	return out
}

// stacks are those of some processes' threads.
func (p *proof) stacks(pids []int) (all []userlab.Stack) {
	for _, task := range p.Tasks {
		for _, pid := range pids {
			if task.ID != uint64(pid) {
				continue
			}
			for _, th := range task.Threads {
				all = append(all, userlab.Stack{Tid: int(th.ID), Frames: frames(task, th), Note: note(th)})
			}
		}
	}
	return all
}

func note(th *kcdata.Thread) string {
	if th.UserWalk == nil {
		return "no user registers"
	}
	return fmt.Sprintf("%d frames, flags %#x, stopped at %#x, %d bytes", len(th.User), th.UserWalk.Flags, th.UserWalk.StopAddr, th.UserWalk.Bytes)
}
