package pager

import (
	"slices"
	"strings"
	"testing"
)

func lookup(vars ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range vars {
			if key, value, _ := strings.Cut(v, "="); key == name {
				return value, true
			}
		}
		return "", false
	}
}

func TestChosen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		vars  []string
		want  string
		asked bool
	}{
		{nil, byDefault, false},
		{[]string{"PAGER=more"}, "more", true},
		{[]string{"PAGER= most -w "}, "most -w", true},
		{[]string{"PAGER=more", "STACKSHOT_PAGER=less"}, "less", true},
		{[]string{"PAGER=more", "STACKSHOT_PAGER="}, "", true},
		{[]string{"PAGER=more", "STACKSHOT_PAGER=cat"}, "", true},
		{[]string{"PAGER="}, "", true},
		{[]string{"PAGER=cat"}, "", true},
	} {
		if command, asked := chosen(lookup(c.vars...)); command != c.want || asked != c.asked {
			t.Errorf("%q: %q, %v", c.vars, command, asked)
		}
	}
}

func TestProcess(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"less -R":        {"less", "-R"},
		"A=b less":       {"/bin/sh", "-c", "A=b less"},
		"less | cat":     {"/bin/sh", "-c", "less | cat"},
		"'my pager'":     {"/bin/sh", "-c", "'my pager'"},
		"~/bin/pager":    {"/bin/sh", "-c", "~/bin/pager"},
		"sed\t-n  s/a/b": {"sed", "-n", "s/a/b"},
	} {
		if got := process(command).Args; !slices.Equal(got, want) {
			t.Errorf("%q: %q", command, got)
		}
	}
}

// What the user has set stays. Root's pager starts nothing for somebody else.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ vars, want []string }{
		{nil, []string{"LESS=FRX", "LV=-c"}},
		{[]string{"LESS="}, []string{"LV=-c"}},
		{[]string{"LESS=-M", "LV=-x"}, nil},
		{[]string{"LESS=-M", "LV=-x", "SUDO_UID=1000"}, []string{"LESSSECURE=1"}},
		{[]string{"LESS=-M", "LV=-x", "SUDO_UID=1000", "LESSSECURE=0"}, nil},
		{[]string{"LESS=-M", "LV=-x", "SUDO_UID=0"}, nil},
	} {
		if got := environment(nil, lookup(c.vars...)); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q", c.vars, got)
		}
	}
}
