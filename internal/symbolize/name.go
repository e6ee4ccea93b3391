package symbolize

import (
	"maps"
	"slices"

	"stackshot/internal/strtab"
	"stackshot/kcdata"
)

// Namer finds the functions of addresses.
type Namer interface {
	// Names returns for each of places (ascending, of user stacks of t's threads)
	// the functions that it is in, innermost first; no function if it is not known.
	Names(t *kcdata.Task, places []kcdata.UserPlace) [][]kcdata.UserFunction
}

// Tally counts the places of user stacks, each once per task.
type Tally struct {
	Addresses int
	Named     int // have the name of a function
	New       int // now say more than before: a module, a name, or a line
}

// names are the functions of one task's places.
type names map[kcdata.UserPlace][]kcdata.UserFunction

// Names names the user stacks of s in memory: it replaces each Task.UserSymbols
// by one that says more. The records are as if s had been read from a file
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

// Unnamed returns the tasks of s with a place of which a Namer could say more: a place
// without a name or, if lines is true, without a source line.
func Unnamed(s *kcdata.Snapshot, lines bool) []*kcdata.Task {
	var out []*kcdata.Task
	for _, t := range s.Tasks {
		if !allKnown(t, lines) {
			out = append(out, t)
		}
	}
	return out
}

func allKnown(t *kcdata.Task, lines bool) bool {
	for p := range placeSet(t) {
		if !Known(t, p, lines) {
			return false
		}
	}
	return true
}

// Known reports whether no Namer could say more of a place: it has a name and, if lines is true,
// a source line.
func Known(t *kcdata.Task, p kcdata.UserPlace, lines bool) bool {
	enough := worthName
	if lines {
		enough = worthLine
	}
	return worth(t.UserSymbols.Functions(p)) >= enough
}

// ask returns what the file says of the places of t, and what n says that is better. It
// counts the places in sum.
func ask(t *kcdata.Task, n Namer, sum *Tally) (known, fresh names) {
	all := places(t)
	if len(all) == 0 {
		return nil, nil
	}
	known, fresh = names{}, names{}
	found := n.Names(t, all)
	for i, p := range all {
		old := t.UserSymbols.Functions(p)
		if len(old) > 0 {
			known[p] = old
		}
		best := old
		if i < len(found) {
			if f := readable(found[i]); worth(f) > worth(old) {
				best, fresh[p] = f, f
				sum.New++
			}
		}
		sum.Addresses++
		if worth(best) >= worthName {
			sum.Named++
		}
	}
	return known, fresh
}

// readable returns funcs as a reader will get them from the file: their names are cut to the
// limit of the string table.
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

// places returns the places of all user stacks of t, ascending, each once.
func places(t *kcdata.Task) []kcdata.UserPlace {
	return slices.SortedFunc(maps.Keys(placeSet(t)), kcdata.UserPlace.Compare)
}

// placeSet has each place once: the threads of a pool have the same few.
func placeSet(t *kcdata.Task) map[kcdata.UserPlace]bool {
	seen := map[kcdata.UserPlace]bool{}
	for _, th := range t.Threads {
		for i := range th.User {
			seen[th.UserPlace(i)] = true
		}
	}
	return seen
}

// What is known of one address; 0: nothing.
const (
	worthModule = iota + 1 // the module
	worthName              // the name of the function
	worthLine              // its name and source line
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
