//go:build linux && (amd64 || arm64)

package hanglab

import (
	"slices"

	"stackshot/internal/waits"
)

// WithoutNames is the case in a capture that has no user stacks, or in which their names were
// not in time: what only these tell is a futex and no more. Who is accused stays the same.
func (c *Case) WithoutNames() *Case {
	d := *c
	d.Waits = slices.Clone(c.Waits)
	for i, w := range d.Waits {
		if slices.ContainsFunc(w.Kinds, namedByStack) {
			d.Waits[i].Kinds = append(slices.Clone(w.Kinds), waits.Futex)
		}
	}
	return &d
}

func namedByStack(k waits.Kind) bool {
	return k == waits.RustLock || k == waits.GoRuntime || k == waits.UserCondvar
}
