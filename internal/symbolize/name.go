package symbolize

import (
	"maps"
	"slices"

	"stackshot/internal/strtab"
	"stackshot/kcdata"
)

// Namer knows functions.
type Namer interface {
	// Names returns, for each of addrs (ascending, of user stacks of t's threads),
	// the functions that it is in, innermost first; none where it is not known.
	// An address stands for what Thread.User says: return addresses, but for the
	// first of a stack and what a signal interrupted.
	Names(t *kcdata.Task, addrs []uint64) [][]kcdata.UserFunction
}

// Tally counts the addresses of user stacks, each once per task.
type Tally struct {
	Addresses int
	Named     int // have the name of a function
	New       int // of these, that had none before, or now say more
}

// names are the functions of one task's addresses.
type names map[uint64][]kcdata.UserFunction

// Names names the user stacks of s in memory: each Task.UserSymbols is replaced
// by one that knows more. The records are as if s had been read from a file
// that holds them.
func Names(s *kcdata.Snapshot, n Namer) Tally {
	var sum Tally
	for _, t := range s.Tasks {
		known, fresh := ask(t, n, &sum)
		if len(fresh) == 0 {
			continue
		}
		maps.Copy(known, fresh)
		table := strtab.New()
		all := records(table, known)
		t.UserSymbols = kcdata.NewUserSymbolTable(all, table.Bytes())
	}
	return sum
}

// Unnamed are the tasks of s with an address that a Namer could say more of: one
// without a name or, where lines are wanted, without a source line.
func Unnamed(s *kcdata.Snapshot, lines bool) []*kcdata.Task {
	enough := worthName
	if lines {
		enough = worthLine
	}
	var out []*kcdata.Task
	for _, t := range s.Tasks {
		if slices.ContainsFunc(addresses(t), func(a uint64) bool { return worth(t.UserSymbols.Functions(a)) < enough }) {
			out = append(out, t)
		}
	}
	return out
}

// ask returns what is known about the addresses of t, and what is new.
func ask(t *kcdata.Task, n Namer, sum *Tally) (known, fresh names) {
	addrs := addresses(t)
	if len(addrs) == 0 {
		return nil, nil
	}
	known, fresh = names{}, names{}
	found := n.Names(t, addrs)
	for i, a := range addrs {
		old := t.UserSymbols.Functions(a)
		if len(old) > 0 {
			known[a] = old
		}
		best := old
		if i < len(found) {
			if f := readable(found[i]); worth(f) > worth(old) {
				best, fresh[a] = f, f
			}
		}
		sum.count(old, best)
	}
	return known, fresh
}

// readable is what a reader will make of funcs once they are written.
func readable(funcs []kcdata.UserFunction) []kcdata.UserFunction {
	var out []kcdata.UserFunction
	for _, f := range funcs {
		f.Name, f.Module, f.File = strtab.Clip(f.Name), strtab.Clip(f.Module), strtab.Clip(f.File)
		if f.Name != "" || f.Module != "" {
			out = append(out, f)
		}
	}
	return out
}

func (s *Tally) count(old, best []kcdata.UserFunction) {
	s.Addresses++
	if worth(best) >= worthName {
		s.Named++
	}
	if worth(best) > worth(old) {
		s.New++
	}
}

// addresses are those of all user stacks of t, ascending, each once.
func addresses(t *kcdata.Task) []uint64 {
	var out []uint64
	for _, th := range t.Threads {
		out = append(out, th.User...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

const (
	worthModule = iota + 1
	worthName
	worthLine
)

// worth ranks what is known of one address.
func worth(funcs []kcdata.UserFunction) int {
	best := 0
	for _, f := range funcs {
		switch {
		case f.Name != "" && f.File != "":
			return worthLine
		case f.Name != "":
			best = max(best, worthName)
		case f.Module != "":
			best = max(best, worthModule)
		}
	}
	return best
}
