package model

import (
	"path"
	"strings"

	"stackshot/kcdata"
)

// MappingOf is the mapping that holds the code of a place in a user stack; nil for none. A
// return address counts for the call before it: what follows the call may be another function,
// in another mapping.
func MappingOf(t *kcdata.Task, p kcdata.UserPlace) *kcdata.Mapping {
	at := p.Addr
	if !p.Exact && at > 0 {
		at--
	}
	m, _ := t.MappingAt(at)
	return m
}

// ModulePath is the path of the file that holds a user frame's code, as the machine had it.
// module is what the frame's name says (kcdata.UserFunction), m the mapping; nil for none.
func ModulePath(module string, m *kcdata.Mapping) string {
	if module != "" || m == nil {
		return module
	}
	return m.Path
}

// ModuleOf names the file by its last component: "libc.so.6", "vdso", "jit"; "anonymous" for
// memory without a file, "unknown" without a mapping.
func ModuleOf(module string, m *kcdata.Mapping) string {
	p := strings.TrimSuffix(ModulePath(module, m), " (deleted)")
	switch {
	case p == "" && m == nil:
		return "unknown"
	case m != nil && m.Flags&kcdata.MappingVDSO != 0:
		return "vdso"
	case p == "":
		return "anonymous"
	case strings.HasPrefix(p, "[") && strings.HasSuffix(p, "]") && len(p) > 2:
		return p[1 : len(p)-1]
	}
	return path.Base(p)
}
