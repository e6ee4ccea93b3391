//go:build linux

package userlab

import (
	"slices"
	"strings"
	"testing"
)

func fr(pc uint64, name string) Frame { return Frame{PC: pc, Func: name, Offset: UnknownOffset} }

var (
	right = []Frame{fr(1, "read"), fr(2, "f"), fr(3, "g"), fr(4, "_start")}
	whole = Thread{Tid: 7, Frames: right, Trusted: 4, Outermost: true}
	part  = Thread{Tid: 7, Frames: right, Trusted: 2, Error: "no unwinding tables at frame 1"}
)

func inlined() Thread {
	t := whole
	t.Frames = slices.Insert(slices.Clone(right), 1, Frame{PC: 2, Func: "small", Inline: true})
	return t
}

func changed(i int, f Frame) []Frame {
	fs := slices.Clone(right)
	fs[i] = f
	return fs
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name                         string
		gdb                          Thread
		ours                         []Frame
		stacks, valid, frames, agree int
		why                          string // of the one failure
	}{
		{"the same", whole, right, 1, 1, 4, 4, ""},
		{"inline frames do not count", inlined(), right, 1, 1, 4, 4, ""},
		{"ours may have other inline frames", whole, slices.Insert(slices.Clone(right), 2, Frame{PC: 3, Func: "h", Inline: true}), 1, 1, 4, 4, ""},
		{"an inlined name is not the function's", inlined(), changed(1, fr(2, "small")), 1, 0, 4, 3, "another name"},
		{"other pc", whole, changed(2, fr(9, "g")), 1, 0, 4, 3, "another pc"},
		{"other name", whole, changed(2, fr(3, "h")), 1, 0, 4, 3, "another name"},
		{"no name", whole, changed(2, fr(3, "")), 1, 0, 4, 3, "no name"},
		{"the leaf's caller is lost", whole, slices.Delete(slices.Clone(right), 1, 2), 1, 0, 4, 1, "lacks a frame"},
		{"_start by luck", whole, []Frame{right[0], right[3]}, 1, 0, 4, 1, "lacks a frame"},
		{"one too many", whole, slices.Insert(slices.Clone(right), 1, fr(9, "x")), 1, 0, 4, 1, "too many"},
		{"short", whole, right[:3], 1, 0, 4, 3, "ends after 3 of 4"},
		{"empty", whole, nil, 1, 0, 4, 0, "ends after 0 of 4"},
		{"past the end", whole, append(slices.Clone(right), fr(9, "x")), 1, 0, 4, 4, "past the outermost"},
		{"gdb has a part and it is right", part, right, 0, 0, 2, 2, ""},
		{"the rest is not held against us", part, []Frame{right[0], right[1], fr(99, "x")}, 0, 0, 2, 2, ""},
		{"gdb has a part and it is wrong", part, []Frame{right[0], fr(9, "x")}, 1, 0, 2, 1, "another pc"},
		{"gdb has a part and we have less", part, right[:1], 1, 0, 2, 1, "ends after 1 of 2"},
		{"gdb has nothing", Thread{Tid: 7, Error: "cannot attach"}, right, 0, 0, 0, 0, ""},
	} {
		v := Judge("p", []Thread{tt.gdb}, []Stack{{Tid: 7, Frames: tt.ours}})
		if v.Stacks != tt.stacks || v.Valid != tt.valid || v.Frames != tt.frames || v.Agree != tt.agree {
			t.Errorf("%s: %+v, want %+v", tt.name, v, tt)
		}
		switch {
		case tt.why == "" && len(v.Failures) > 0:
			t.Errorf("%s: %v", tt.name, v.Failures)
		case tt.why != "" && (len(v.Failures) != 1 || !strings.Contains(v.Failures[0].Why, tt.why)):
			t.Errorf("%s: failures %v, want one with %q", tt.name, v.Failures, tt.why)
		}
	}
}

func TestJudgeOfThreads(t *testing.T) {
	v := Judge("p", []Thread{whole}, nil)
	if v.Stacks != 1 || v.Valid != 0 || v.Frames != 4 || len(v.Failures) != 1 {
		t.Errorf("a thread that we lack: %+v", v)
	}
	v = Judge("p", nil, []Stack{{Tid: 8, Frames: right}})
	if v.Stacks != 0 || v.StackPercent() != 0 || v.Unsure["gdb has no such thread"] != 1 {
		t.Errorf("a thread that gdb lacks: %+v", v)
	}
	v = Judge("p", []Thread{whole}, []Stack{{Tid: 7, Note: "paged out"}})
	if len(v.Failures) != 1 || !strings.Contains(v.Failures[0].String(), "(paged out)") {
		t.Errorf("a note is lost: %v", v.Failures)
	}
}

func TestAgreesByOffset(t *testing.T) {
	gdb := Frame{PC: 5, Func: "__GI___libc_read", Offset: 3}
	for _, tt := range []struct {
		ours Frame
		want bool
	}{
		{Frame{PC: 5, Func: "read", Offset: 3}, true},
		{Frame{PC: 5, Func: "read", Offset: 2}, false},
		{Frame{PC: 5, Func: "read", Offset: UnknownOffset}, false},
		{Frame{PC: 5, Func: "__GI___libc_read", Offset: UnknownOffset}, true},
		{Frame{PC: 5, Offset: 3}, false},
		{Frame{PC: 6, Func: "__GI___libc_read", Offset: 3}, false},
	} {
		if got := tt.ours.agrees(gdb); got != tt.want {
			t.Errorf("%+v: %v", tt.ours, got)
		}
	}
	unnamed := Frame{PC: 5, Offset: UnknownOffset}
	if !(Frame{PC: 5, Func: "anything"}).agrees(unnamed) || (Frame{PC: 6}).agrees(unnamed) {
		t.Error("where gdb has no name, and only there, the pc decides")
	}
}

func TestPlainName(t *testing.T) {
	for in, want := range map[string]string{
		"f":                                "f",
		"f.constprop.0":                    "f",
		"f.part.3.cold":                    "f",
		"ns::f(int, std::pair<int, int>)":  "ns::f",
		"ns::T::f(int) const":              "ns::T::f",
		"f(int) [clone .isra.0]":           "f",
		"main.(*reader).blocked":           "main.(*reader).blocked",
		"main.(*T)":                        "main.(*T)",
		"runtime.goexit.abi0":              "runtime.goexit",
		"read@@GLIBC_2.2.5":                "read",
		"lab::deeper::h0123456789abcdef":   "lab::deeper",
		"(anonymous namespace)::f(char *)": "(anonymous namespace)::f",
		"":                                 "",
	} {
		if got := plainName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestTotalLeavesApartOut(t *testing.T) {
	a := Verdict{Process: "a", Stacks: 10, Valid: 9, Frames: 100, Agree: 99, Unsure: map[string]int{"x": 1}}
	b := Verdict{Process: "b", Stacks: 10, Apart: true, Frames: 100}
	if v := Total([]Verdict{a, b}); v.StackPercent() != 90 || v.FramePercent() != 99 || v.Unsure["x"] != 1 {
		t.Errorf("%+v", v)
	}
}
