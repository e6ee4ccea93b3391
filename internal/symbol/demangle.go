package symbol

import (
	"strings"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"
)

const (
	// maxMangled is the longest name that is demangled: work grows faster than
	// its length.
	maxMangled = 8 << 10
	// maxName is the longest name given: the file's strings end at 4,096 bytes.
	maxName = 4000
)

// Demangle makes a symbol's name readable: C++ and Rust without parameters,
// return type and hash, with template arguments; all others as they are.
func Demangle(raw string) string {
	name := raw
	if mangled(raw) && len(raw) <= maxMangled {
		if s, err := demangle.ToString(raw, demangle.NoParams, demangle.NoEnclosingParams, demangle.NoABITags, demangle.MaxLength(14)); err == nil && s != "" {
			name = s
		}
	}
	if len(name) <= maxName {
		return name
	}
	cut := maxName
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + "…"
}

func mangled(s string) bool {
	return strings.HasPrefix(s, "_Z") || strings.HasPrefix(s, "_R") || strings.HasPrefix(s, "___Z")
}
