package cgroupname

import (
	"strings"
	"unicode/utf8"

	"stackshot/internal/show"
)

const (
	shortID  = 12 // digits of a container's id, as its own tools show it
	shortUID = 8  // digits of a pod's uid: up to its first hyphen
	maxCells = 56 // of a short name
)

// Short names the owner of a control group: "nginx.service", "docker 3f2a9c1b04d7",
// "session-3.scope of user 1000". A path that no row knows is its own name. "" for the root, and
// without a path.
func Short(path string) string {
	path = strings.Trim(path, "/")
	if path == "" {
		return ""
	}
	for i := range table {
		if name, rest, ok := table[i].name(path); ok {
			if unit := unitOf(rest); unit != "" && !strings.HasSuffix(unit, ".slice") {
				name += ", " + unit
			}
			return fit(name)
		}
	}
	if unit := unitOf(path); unit != "" {
		return fit(unit)
	}
	return fitEnd("/" + path)
}

// name is what the row makes of path, and what of the path lies within its container.
func (r *row) name(path string) (name, rest string, ok bool) {
	m := r.pattern.FindStringSubmatchIndex(path)
	if m == nil {
		return "", "", false
	}
	var words []string
	for word := range strings.FieldsSeq(r.words) {
		if !strings.HasPrefix(word, "{") {
			words = append(words, word)
			continue
		}
		group := strings.Trim(word, "{}")
		at := 2 * r.pattern.SubexpIndex(group)
		if m[at] < 0 || m[at] == m[at+1] {
			words = withoutLabel(words, group)
			continue
		}
		words = append(words, shorten(group, path[m[at]:m[at+1]]))
	}
	return strings.Join(words, " "), path[m[1]:], true
}

// withoutLabel takes away the word that announces a group which the path does not have.
func withoutLabel(words []string, group string) []string {
	label := map[string]string{"pod": "pod", "id": "container"}[group]
	if n := len(words); n > 1 && words[n-1] == label {
		return words[:n-1]
	}
	return words
}

// shorten gives the value of a group as it is shown.
func shorten(group, value string) string {
	switch {
	case group == "id", group == "pod" && len(value) == 64:
		return value[:shortID]
	case group == "pod" && len(value) >= 32 && strings.IndexFunc(value[:shortUID], notHex) < 0:
		return value[:shortUID]
	}
	return strings.TrimSuffix(unescape(value), "-")
}

func notHex(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }

// unescape gives the hyphens back that systemd escapes in names of units.
func unescape(s string) string { return strings.ReplaceAll(s, `\x2d`, "-") }

// fit cuts a name at its end.
func fit(name string) string { return show.Fit(show.Clean(name), maxCells) }

// fitEnd cuts a path at its begin, because its last components tell most.
func fitEnd(path string) string {
	path = show.Clean(path)
	if show.Cells(path) <= maxCells {
		return path
	}
	at := len(path)
	for cells := len("..."); at > 0; {
		r, size := utf8.DecodeLastRuneInString(path[:at])
		if cells += show.Cells(string(r)); cells > maxCells {
			break
		}
		at -= size
	}
	return "..." + path[at:]
}
