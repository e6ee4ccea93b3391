package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"stackshot/internal/foreign"
	"stackshot/internal/image"
	"stackshot/internal/limits"
	"stackshot/internal/procfs"
	"stackshot/internal/symbol"
	"stackshot/internal/symbolize"
	"stackshot/kcdata"
)

// naming has the flags of the commands that name user stacks.
type naming struct {
	off    bool // --no-symbols
	lines  bool // --lines
	remote bool // --remote-files
	quick  bool // for the report of a capture, which does not wait long for a disk, and not for the network
}

// quickLimit bounds how long the report of a capture waits for names.
const quickLimit = 2 * time.Second

func (n *naming) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&n.lines, "lines", false, "include source lines and inlined functions of user stacks, where there is debug information (takes longer)")
	f.BoolVar(&n.remote, "remote-files", false, "read program files on FUSE and network file systems too, which may hang")
}

func (n *naming) flagOff(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&n.off, "no-symbols", false, "read no program files: user stacks show the names that the file holds, otherwise addresses")
}

// resolved holds the names that were found in files of this machine. It is a symbolize.Namer.
type resolved map[*kcdata.Task]*kcdata.UserSymbolTable

func (r resolved) Names(t *kcdata.Task, places []kcdata.UserPlace) [][]kcdata.UserFunction {
	table := r[t]
	out := make([][]kcdata.UserFunction, len(places))
	for i, p := range places {
		out[i] = table.Functions(p)
	}
	return out
}

// resolve looks up the names that s lacks in files of this machine. It returns after the
// resolver's time limit, whatever hangs. skipped says what was not read, and why.
func (n *naming) resolve(ctx context.Context, s *kcdata.Snapshot, quiet bool) (names resolved, skipped []string) {
	tasks := symbolize.Unnamed(s, n.lines)
	if n.off || len(tasks) == 0 {
		return nil, nil
	}
	if err := (limits.Machine{}).NeedPids(namingPids); err != nil {
		return nil, []string{"the programs of all user stacks: " + err.Error()}
	}
	defer progress(quiet, fmt.Sprintf("naming the user stacks of %d tasks", len(tasks)))()
	o := symbol.Options{Local: isLocal(s), Lines: n.lines}
	o.Known = func(t *kcdata.Task, p kcdata.UserPlace) bool { return symbolize.Known(t, p, n.lines) }
	if n.quick {
		o.Limit = quickLimit
		within(&o, limits.Machine{}.Memory().Free)
	} else {
		var err error
		if o.Server, err = symbol.DebuginfodFromEnv(); err != nil {
			skipped = append(skipped, err.Error())
		}
	}
	files := foreign.New(foreign.Options{Remote: n.remote, Command: fileReader})
	defer files.Close()
	res := symbol.NewResolver(files, o).Resolve(ctx, tasks)
	for _, k := range res.Skipped {
		skipped = append(skipped, k.What+": "+k.Reason)
	}
	return res.Tasks, skipped
}

// Parts of the memory that is left, for the names of a capture: a table of one file, of which
// four are read at once and each may be there in up to five forms, packed and unpacked; what is kept of
// files; all, names and garbage included.
const (
	tableShare = 1. / 32
	cacheShare = 1. / 8
	namesShare = 7. / 8
)

// ownLimit is the memory limit of the Go runtime before names had one.
var ownLimit = sync.OnceValue(func() int64 { return debug.SetMemoryLimit(-1) })

// within has names take no more than their parts of free bytes: they come from files of other people,
// who may make them as large as they like. What does not fit is skipped, with the reason. The limit of
// the runtime stays until names are looked up again, since a file that is late may still be read.
func within(o *symbol.Options, free int64) {
	share := func(part float64) int64 { return max(int64(part*float64(free)), 1<<16) }
	o.FileBytes, o.CacheBytes = share(tableShare), min(share(cacheShare), image.DefaultMaxCost)
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	debug.SetMemoryLimit(min(ownLimit(), int64(now.Sys-now.HeapReleased)+share(namesShare)))
}

// name names the user stacks of s in memory and returns what was not read.
func (n *naming) name(ctx context.Context, s *kcdata.Snapshot, quiet bool) (skipped []string) {
	names, skipped := n.resolve(ctx, s, quiet)
	if len(names) > 0 {
		symbolize.Names(s, names)
	}
	return skipped
}

// isLocal reports whether s was taken on this machine, since it was booted, in the pid
// namespace that we are in. Then its processes may still be in /proc.
func isLocal(s *kcdata.Snapshot) bool {
	boot, err := procfs.FS{}.BootID()
	if err != nil || boot == "" || strings.TrimSpace(s.BootID) != strings.TrimSpace(boot) {
		return false
	}
	ns, _, err := procfs.FS{}.PidNamespace()
	return err == nil && s.HasMachine && s.Machine.PidNS == uint64(ns)
}
