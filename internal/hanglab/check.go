//go:build linux && (amd64 || arm64)

package hanglab

import (
	"fmt"
	"slices"

	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// check collects what is wrong with a verdict on one case.
type check struct {
	v    *Verdict
	r    *Running
	role map[int]string // by tid
	errs []error
}

// Check says what of v is wrong about the threads of r: what is missing, and what is too
// much.
func Check(v *Verdict, r *Running) []error {
	c := &check{v: v, r: r, role: map[int]string{}}
	for role, p := range r.Cast {
		c.role[p.Tid] = role
	}
	c.deadlocks()
	c.culprits()
	c.owners()
	for _, w := range r.Waits {
		c.wait(w)
	}
	for _, f := range r.Files {
		c.file(f)
	}
	return c.errs
}

func (c *check) wrong(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(c.r.Name+": "+format, args...))
}

// names are the roles of threads; a stranger is shown by number.
func (c *check) names(tids []int) []string {
	var roles []string
	for _, tid := range tids {
		role := c.role[tid]
		if role == "" {
			role = fmt.Sprint(tid)
		}
		roles = append(roles, role)
	}
	return roles
}

// ours reports whether any of these threads is of the case.
func (c *check) ours(tids []int) bool {
	return slices.ContainsFunc(tids, func(tid int) bool { return c.role[tid] != "" })
}

func (c *check) deadlocks() {
	found := 0
	for _, d := range c.v.Deadlocks {
		tids := tidsOf(d.Threads)
		if !c.ours(tids) && !c.ours(d.Behind.Tids) {
			continue
		}
		found++
		if cycle := c.names(tids[:min(d.Cycle, len(tids))]); !sameCycle(cycle, c.r.Cycle) {
			c.wrong("deadlock of %v, want %v", cycle, c.r.Cycle)
		}
		if behind := c.names(d.Behind.Tids); d.Behind.Tids != nil && !sameSet(behind, c.r.Behind) || d.Behind.Count != len(c.r.Behind) {
			c.wrong("behind the deadlock %v (%d), want %v", behind, d.Behind.Count, c.r.Behind)
		}
		want := waits.Likely
		if c.v.OneInstant && !c.r.Probably {
			want = waits.Sure
		}
		if d.Confidence != want {
			c.wrong("the deadlock is %q, want %q", d.Confidence, want)
		}
	}
	if want := min(len(c.r.Cycle), 1); found != want && !(c.r.MayCycle && found == 0) {
		c.wrong("%d deadlocks, want %d", found, want)
	}
}

// sameCycle compares two cycles that may begin anywhere.
func sameCycle(a, b []string) bool {
	for i := range b {
		if slices.Equal(a, slices.Concat(b[i:], b[:i])) {
			return true
		}
	}
	return len(a) == len(b) && len(a) == 0
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func (c *check) culprits() {
	seen := map[string]bool{}
	for _, k := range c.v.Culprits {
		role := c.role[k.Tid]
		switch i := slices.IndexFunc(c.r.Culprits, func(w Culprit) bool { return w.Role == role }); {
		case role == "" && !c.ours(k.Victims.Tids):
		case role == "" && c.r.Gone && (k.Reason == waitgraph.Dead || k.Reason == waitgraph.Outside):
		case role == "":
			c.wrong("thread %d (%s) is accused of %s, with victims %v", k.Tid, k.Name, k.Reason, c.names(k.Victims.Tids))
		case i >= 0:
			seen[role] = true
			c.culprit(k, c.r.Culprits[i])
		case !slices.Contains(c.r.May, role):
			c.wrong("%s is accused: %s", role, k.Reason)
		}
	}
	for _, w := range c.r.Culprits {
		if !seen[w.Role] {
			c.wrong("%s is no culprit, want one: %v", w.Role, w.Reasons)
		}
	}
}

func (c *check) culprit(k FoundCulprit, w Culprit) {
	if !slices.Contains(w.Reasons, k.Reason) {
		c.wrong("%s is accused: %s, want %v", w.Role, k.Reason, w.Reasons)
	}
	if c.r.Alone || c.r.Read {
		if k.Victims.Count < len(w.Victims) {
			c.wrong("%s has %d victims, want %v", w.Role, k.Victims.Count, w.Victims)
		}
		return
	}
	if victims := c.names(k.Victims.Tids); k.Victims.Tids != nil && !sameSet(victims, w.Victims) || k.Victims.Count != len(w.Victims) {
		c.wrong("victims of %s %v (%d), want %v", w.Role, victims, k.Victims.Count, w.Victims)
	}
}

// owners holds every owner that is named for a thread of the case against the case.
func (c *check) owners() {
	for _, f := range c.v.Waits {
		role := c.role[f.Tid]
		i := slices.IndexFunc(c.r.Waits, func(w Wait) bool { return w.Role == role })
		if role == "" || i >= 0 || slices.ContainsFunc(c.r.Files, func(f FileWait) bool { return f.Role == role }) {
			continue // not ours, or looked at by wait or file
		}
		if f.Kind == waits.CPU && c.mayBeRunnable(role) {
			continue
		}
		if names := c.names(tidsOf(f.Owners)); len(names) > 0 {
			c.wrong("%s waits for %v, want no owner", role, names)
		}
	}
}

// mayBeRunnable reports whether a role may wait for a CPU, whoever has it.
func (c *check) mayBeRunnable(role string) bool {
	return slices.ContainsFunc(c.r.Culprits, func(k Culprit) bool {
		return k.Role == role && slices.Contains(k.Reasons, waitgraph.Runnable)
	})
}

func (c *check) wait(w Wait) {
	i := slices.IndexFunc(c.v.Waits, func(f FoundWait) bool { return c.role[f.Tid] == w.Role })
	if i < 0 {
		c.wrong("%s does not wait", w.Role)
		return
	}
	f := c.v.Waits[i]
	if !slices.Contains(w.Kinds, f.Kind) {
		c.wrong("%s waits for %s, want %v", w.Role, f.Kind, w.Kinds)
	}
	var want []string
	if w.Owner != "" {
		want = []string{w.Owner}
	}
	names := c.names(tidsOf(f.Owners))
	if c.r.Gone {
		names = slices.DeleteFunc(names, func(n string) bool { return c.r.Cast[n].Tid == 0 })
	}
	if !slices.Equal(names, want) {
		c.wrong("%s waits for %v, want %v", w.Role, names, want)
	}
}
