package symbol

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
	"unsafe"

	"stackshot/internal/foreign"
	"stackshot/internal/image"
	"stackshot/internal/strtab"
	"stackshot/kcdata"
)

// Limits of Options that set none.
const (
	DefaultLimit = 10 * time.Second
	workers      = 4 // as many files as foreign.Files reads at once
)

// Options are constant for the life of a Resolver.
type Options struct {
	// Local says that the captures are of this machine, since its last boot:
	// then files are reached through the processes, and perf maps are read.
	Local bool

	// Known, if set, reports whether enough is known of a place. No file is read for it alone.
	Known func(t *kcdata.Task, p kcdata.UserPlace) bool

	Lines      bool          // source lines and inlined functions, from DWARF
	DebugRoots []string      // of split debug files; nil: /usr/lib/debug
	Server     *Debuginfod   // nil: the network is not asked
	CacheBytes int64         // what is kept of files; 0: image.DefaultMaxCost
	FileBytes  int64         // what each table of one file may take, and a quarter of what the names of all files may; 0: bounded by fixed limits alone
	Limit      time.Duration // for one call, whatever hangs; 0: DefaultLimit
	Proc       string        // "": /proc

	// Progress, if set, is called by Resolve after each file: done of total. It
	// is called by one goroutine at a time, and not after Resolve returned.
	Progress func(done, total int)
}

// room is elffile.Reader.Room of each file.
func (o *Options) room() uint64 {
	if o.FileBytes <= 0 {
		return math.MaxUint64
	}
	return uint64(o.FileBytes)
}

// names is the room for the names of all files of a call.
func (o *Options) names() *room {
	if o.FileBytes <= 0 {
		return nil
	}
	r := &room{}
	r.left.Store(4 * o.FileBytes)
	return r
}

// Resolver names user addresses, and keeps what it learnt of files for the next
// capture. Safe to call concurrently.
type Resolver struct {
	o     Options
	files *foreign.Files
	cache *image.Cache
}

// NewResolver makes one that reads files through files, which stays the
// caller's.
func NewResolver(files *foreign.Files, o Options) *Resolver {
	if o.DebugRoots == nil {
		o.DebugRoots = []string{"/usr/lib/debug"} // where distributions put them
	}
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	o.Proc = cmp.Or(o.Proc, "/proc")
	return &Resolver{o: o, files: files, cache: image.New(files, o.CacheBytes)}
}

// Resolve names the addresses of all user stacks of tasks that Options.Known does not know. It returns after
// Options.Limit or when ctx ends, whatever hangs. Skipped lists the files that it did
// not read in time.
func (r *Resolver) Resolve(ctx context.Context, tasks []*kcdata.Task) *Result {
	w := newWanted(r.o.Local, r.o.Proc)
	for _, t := range tasks {
		w.addTask(t, r.o.Known)
	}
	return r.do(ctx, w, r.o.Progress)
}

func (r *Resolver) do(ctx context.Context, w *wanted, progress func(done, total int)) *Result {
	ctx, cancel := context.WithTimeout(ctx, r.o.Limit)
	defer cancel()
	names := r.o.names()
	for _, j := range w.order {
		slices.Sort(j.offs)
		j.offs, j.names = slices.Compact(j.offs), names
	}
	done := r.start(ctx, w.order)
	found := make(map[*job]outcome, len(w.order))
	for len(found) < len(w.order) && ctx.Err() == nil {
		select {
		case o := <-done:
			found[o.job] = o
			if progress != nil {
				progress(len(found), len(w.order))
			}
		case <-ctx.Done():
		}
	}
	tables, lost := w.tables(found, names)
	skipped := skipsOf(w.order, found, "not read in time: "+fmt.Sprint(context.Cause(ctx)))
	if lost > 0 {
		skipped = append(skipped, Skip{fmt.Sprintf("the names of %d tasks", lost), "no memory is left for them"})
	}
	return &Result{tables, skipped}
}

// start does the jobs, a few at a time. Each sends one outcome to the channel, which
// has room for all: a job that nobody waits for any more can still end.
func (r *Resolver) start(ctx context.Context, jobs []*job) <-chan outcome {
	done := make(chan outcome, len(jobs))
	todo := make(chan *job, len(jobs))
	for _, j := range jobs {
		todo <- j
	}
	close(todo)
	for range min(workers, len(jobs)) {
		go func() {
			for j := range todo {
				if ctx.Err() != nil {
					return
				}
				done <- r.run(ctx, j)
			}
		}()
	}
	return done
}

// Result is the names of some tasks' addresses.
type Result struct {
	Tasks   map[*kcdata.Task]*kcdata.UserSymbolTable // those with an address of which something is known
	Skipped []Skip                                   // files that gave no names, or not all
}

// Skip is something that was not read, and why.
type Skip struct{ What, Reason string }

// skipsOf lists the errors of the jobs, each once, and late for a job that has not ended. They
// stand in the order of the jobs, not in that of their ends: the list is the same each time,
// and so is what a reader with room for a few shows of it.
func skipsOf(jobs []*job, found map[*job]outcome, late string) (list []Skip) {
	listed := map[Skip]bool{}
	for _, j := range jobs {
		o, ended := found[j]
		for _, err := range o.errs {
			if s := (Skip{j.what(), reason(err)}); !listed[s] {
				listed[s] = true
				list = append(list, s)
			}
		}
		if !ended {
			list = append(list, Skip{j.what(), late})
		}
	}
	return list
}

// what is the job's file for people.
func (j *job) what() string {
	if j.kind == jobPerf {
		return j.sources[0].Mapping.Path
	}
	return j.module
}

// tables are those of the tasks with an address of which something is known, but for lost ones, for
// which names has no room: the names of one file may stand in the tables of many tasks.
func (w *wanted) tables(found map[*job]outcome, names *room) (tables map[*kcdata.Task]*kcdata.UserSymbolTable, lost int) {
	tables = make(map[*kcdata.Task]*kcdata.UserSymbolTable, len(w.spots))
	byID := slices.SortedFunc(maps.Keys(w.spots), func(a, b *kcdata.Task) int { return cmp.Compare(a.ID, b.ID) })
	for _, t := range byID {
		table, bytes := tableOf(w.spots[t], found)
		switch {
		case table.Len() == 0:
		case names.take(bytes):
			tables[t] = table
		default:
			lost++
		}
	}
	return tables, lost
}

// tableOf names one task's places, in a number of bytes. Of a file that gives no name it has the module.
func tableOf(spots []spot, found map[*job]outcome) (table *kcdata.UserSymbolTable, bytes int) {
	var records []kcdata.LinuxUserSymbol
	strs := strtab.New()
	for _, s := range spots {
		r := kcdata.LinuxUserSymbol{Addr: s.Addr, Flags: s.Flag(), Module: strs.Add(s.job.module)}
		funcs := found[s.job].names[s.off]
		for _, f := range funcs {
			r.Name, r.Offset, r.File, r.Line = strs.Add(f.Name), f.Offset+s.back, strs.Add(f.File), f.Line
			records = append(records, r)
		}
		if len(funcs) == 0 && s.job.kind != jobPerf {
			records = append(records, r)
		}
	}
	text := strs.Bytes()
	return kcdata.NewUserSymbolTable(records, text), len(text) + len(records)*int(unsafe.Sizeof(kcdata.LinuxUserSymbol{}))
}
