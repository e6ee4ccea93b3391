//go:build linux && (amd64 || arm64)

package hanglab

import (
	"slices"
	"strings"
)

// file holds what is said of one open file against the case.
func (c *check) file(want FileWait) {
	i := slices.IndexFunc(c.v.Waits, func(f FoundWait) bool { return c.role[f.Tid] == want.Role })
	if i < 0 {
		c.wrong("%s does not wait", want.Role)
		return
	}
	f := c.v.Waits[i]
	if len(want.Kinds) > 0 && !slices.Contains(want.Kinds, f.Kind) {
		c.wrong("%s waits for %s, want %v", want.Role, f.Kind, want.Kinds)
	}
	if names := c.names(tidsOf(f.Owners)); !sameSet(names, want.Owners) {
		c.wrong("%s waits for %v, want %v", want.Role, names, want.Owners)
	}
	if f.File == nil {
		if len(want.Says) > 0 || want.Remote != "" || want.Mount != "" {
			c.wrong("%s: nothing is said of its file", want.Role)
		}
		return
	}
	if len(want.Says) > 0 && !slices.Contains(want.Says, f.File.Says) {
		c.wrong("%s: it is said of its file %q, want %q", want.Role, f.File.Says, want.Says)
	}
	if f.File.Remote != want.Remote {
		c.wrong("%s: the other side is %q, want %q", want.Role, f.File.Remote, want.Remote)
	}
	if m := f.File.Mount; want.Mount != "" && (m == nil || !strings.HasSuffix(m.Point, "/"+want.Mount)) {
		c.wrong("%s: the mount is %+v, want %s", want.Role, m, want.Mount)
	}
}
