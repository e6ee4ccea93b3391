package filter

import (
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Wildcards mean what .* means in a regular expression, on texts in which many places fit.
func TestWildcards(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	word := func(letters string, most int) string {
		b := make([]byte, r.IntN(most))
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	for range 20_000 {
		pattern, text := word("ab*", 7), word("ab", 9)
		re := strings.ReplaceAll(pattern, "*", ".*")
		for op, re := range map[Op]string{Is: "^" + re + "$", Prefix: "^" + re, Part: re} {
			if got, want := ParseValue(pattern).matches(op, text), regexp.MustCompile(re).MatchString(text); got != want {
				t.Fatalf("%q %s %q: %v", text, op, pattern, got)
			}
		}
	}
}

// A text with many wildcards against a text that nearly fits takes no time.
func TestWildcardsDoNotExplode(t *testing.T) {
	v := ParseValue(strings.Repeat("*a", 10_000) + "*b")
	if v.matches(Is, strings.Repeat("a", 100_000)) {
		t.Error("it matches")
	}
}

func TestParseValue(t *testing.T) {
	for text, want := range map[string]Value{
		`a`: {"a"}, `a*b`: {"a", "b"}, `*`: {"", ""}, `**a**b**`: {"", "a", "b", ""}, `a\*b`: {"a*b"}, `\\`: {`\`}, `\\*`: {`\`, ""},
		`\x1b[2J`: {`\x1b[2J`}, `dev\x2dsda`: {`dev\x2dsda`}, `\"\'`: {`"'`}, `a\`: {`a\`},
	} {
		if got := ParseValue(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"10s": 10 * time.Second, "3m": 3 * time.Minute, "1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond, "2d": 2 * day,
		"2d12h30m": 2*day + 12*time.Hour + 30*time.Minute, "0": 0, "0d": 0, "1.5s": 1500 * time.Millisecond, "50000d": 50000 * day, "7us": 7000, "7ns": 7,
	} {
		if got, err := durationOf(Literal(text)); err != nil || got != uint64(want) {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"10", "s", "d", "1h2d", "-1s", "+1s", "1d-1s", "-1d", "50001d", "9999999h", "50000d2000000h", "1d2", "1d 2h", "ten", "1e3s", "1s1d", "1_0s", ""} {
		if got, err := durationOf(Literal(text)); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}
