package report

import (
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	long := strings.Repeat("Ab", 40)
	cut := long[:maxArguments-3] + "..."
	for name, want := range map[string]string{
		"main.f":                                                "main.f",
		"slices.Sort[go.shape.int]":                             "slices.Sort[go.shape.int]",
		strings.Repeat("main.f", 30):                            strings.Repeat("main.f", 30),
		"slices.f[" + long + "]":                                "slices.f[" + cut + "]",
		"slices.f[" + long + "].func1":                          "slices.f[" + cut + "].func1",
		"f[" + long + "].g[" + long + "].h":                     "f[" + cut + "].g[" + cut + "].h",
		"f[" + long[:60] + "]":                                  "f[" + long[:60] + "]",
		"f[" + long[:61] + "]":                                  "f[" + long[:57] + "...]",
		"std::vector<" + long + ">::push_back(int)":             "std::vector<" + cut + ">::push_back(int)",
		"bool operator< <" + long + ">(A, B)":                   "bool operator< <" + cut + ">(A, B)",
		"std::ostream& operator<<<" + long + ">(std::ostream&)": "std::ostream& operator<<<" + cut + ">(std::ostream&)",
		"A::operator->() const [with " + long + "]":             "A::operator->() const [" + ("with " + long)[:57] + "...]",
		"f<fn(A) -> B, " + long + ">::g":                        "f<" + ("fn(A) -> B, " + long)[:57] + "...>::g",
		"<alloc::" + long + " as core::Trait>::run":             "<" + ("alloc::" + long)[:57] + "...>::run",
		"f[" + long:                          "f[" + long, // no end: a name like any
		"f[" + strings.Repeat("ä", 61) + "]": "f[" + strings.Repeat("ä", 57) + "...]",
		"f[chan<- " + long + "]":             "f[" + ("chan<- " + long)[:57] + "...]",
	} {
		if got := shorten(name); got != want {
			t.Errorf("%s\n gives %s\n want  %s", name, got, want)
		}
	}
}

// Whatever the name: never longer, and valid text stays valid.
func TestShortenAnyName(t *testing.T) {
	check := func(name string) bool {
		got := shorten(name)
		return utf8.RuneCountInString(got) <= utf8.RuneCountInString(name) && (utf8.ValidString(got) || !utf8.ValidString(name))
	}
	brackets := func(parts []uint8) bool {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString([]string{"[", "]", "<", ">", "-", "operator", "a", "ü", "0123456789012345678901"}[int(p)%9])
		}
		return check(b.String())
	}
	for _, f := range []any{check, brackets} {
		if err := quick.Check(f, &quick.Config{MaxCount: 5000}); err != nil {
			t.Error(err)
		}
	}
}

// Only the text report shortens.
func TestLongNameInEveryFormat(t *testing.T) {
	long := "main.f[" + strings.Repeat("go.shape.struct { A int };", 12) + "]"
	f := &userFrame{}
	f.Name, f.Module = long, "/bin/x"
	if got := f.text(); !strings.Contains(got, "...] [x]") || utf8.RuneCountInString(got) > 80 {
		t.Errorf("%s", got)
	}
	if got := f.identity(); got.name != long || got.module != "x" {
		t.Errorf("two functions could be one: %+v", got)
	}
}
