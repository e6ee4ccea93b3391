package screen

import (
	"strings"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// effort is what a thread does for memory, by the functions on its kernel stack.
type effort int

const (
	noEffort  effort = iota
	killing          // in the OOM killer, or waits for what it does
	groupWork        // reclaims because its control group is at a limit, or is slowed down for that
	direct           // reclaims or compacts itself because the machine has too little
	swapIn           // waits for a page that was swapped out
	refault          // waits for a page of a file that it has mapped: at a limit, one that was reclaimed before
	kernel           // kswapd, kcompactd: does so for the others
)

// efforts are the functions that tell, each with the kernels that have it. The first row of which
// a function is on the stack counts. Where a kernel inlines one, another of the row is there: the
// paths are long, and a test has each as 6.1, 6.12, 6.18 and 7.1 show it.
var efforts = []struct {
	effort    effort
	functions string
}{
	{killing, "out_of_memory mem_cgroup_out_of_memory oom_kill_process pagefault_out_of_memory mem_cgroup_oom_synchronize " + // the last: version 1, asleep until somebody makes room
		"__oom_reap_task_mm oom_reap_task oom_reap_task_mm"}, // oom_reaper itself is where that thread rests
	{groupWork, "try_to_free_mem_cgroup_pages reclaim_high " +
		"mem_cgroup_handle_over_high __mem_cgroup_handle_over_high"}, // the second since 6.14
	{kernel, "balance_pgdat kcompactd_do_work"},
	{direct, "try_to_free_pages throttle_direct_reclaim __alloc_pages_direct_reclaim __perform_reclaim " +
		"__alloc_pages_direct_compact try_to_compact_pages node_reclaim __node_reclaim"},
	{swapIn, "swap_readpage swap_read_folio swapin_readahead swap_cluster_readahead swap_vma_readahead read_swap_cache_async " + // swap_read_folio since 6.6
		"shmem_swapin shmem_swapin_folio shmem_swapin_cluster swapin_folio"},
	{refault, "filemap_fault"},
}

var effortOf = func() map[string]int {
	rows := map[string]int{}
	for i, row := range efforts {
		for name := range strings.FieldsSeq(row.functions) {
			rows[name] = i
		}
	}
	return rows
}()

// effort says what t does for memory. A thread that is on its way, preempted or waiting counts
// alike: its stack is of this instant.
func (v *view) effort(t *thread) effort {
	best := len(efforts)
	for _, addr := range t.Kernel {
		sym, ok := v.s.Symbols.Name(addr)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(sym.Name, ".") // what the compiler puts behind it
		if row, ok := effortOf[name]; ok && row < best {
			best = row
		}
	}
	if best == len(efforts) || efforts[best].effort == refault && t.state.Class != model.Blocked {
		return noEffort
	}
	return efforts[best].effort
}

// workers are the threads with an effort, longest first, by the control group that counts for
// their memory; nil is the key of those that the file has no group for.
type workers struct {
	of    map[*kcdata.Cgroup][]*thread
	doing map[*thread]effort
	all   []*thread
}

func (v *view) workers() *workers {
	w := &workers{of: map[*kcdata.Cgroup][]*thread{}, doing: map[*thread]effort{}}
	for _, t := range v.threads {
		if e := v.effort(t); e != noEffort {
			w.doing[t] = e
			w.all = append(w.all, t)
		}
	}
	longestFirst(w.all)
	groups := v.s.MemoryCgroups()
	for _, t := range w.all {
		g := groups[t.task]
		w.of[g] = append(w.of[g], t)
	}
	return w
}

// only are those of list that do one of efforts.
func (w *workers) only(list []*thread, efforts ...effort) (out []*thread) {
	for _, t := range list {
		for _, e := range efforts {
			if w.doing[t] == e {
				out = append(out, t)
			}
		}
	}
	return out
}
