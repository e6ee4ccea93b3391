package kcdata

import (
	"bytes"
	"testing"
)

func TestTaskSection(t *testing.T) {
	pre := func(w ItemWriter) { ok(t, w.Uint64Desc("clock", 1)) }
	tasks := func(w ItemWriter) {
		ok(t, w.BeginContainer(TypeTask, 1))
		ok(t, w.BeginContainer(TypeThread, 1))
		ok(t, w.EndContainer(1))
		ok(t, w.EndContainer(1))
		ok(t, w.BeginContainer(TypeTransitioningTask, 2))
		ok(t, w.EndContainer(2))
	}
	post := func(w ItemWriter) {
		ok(t, w.BeginContainer(TypeExclaves, 0))
		ok(t, w.EndContainer(0))
		ok(t, w.Struct(TypeDuration, Duration{}))
	}
	only := NewWriter(make([]byte, 1024))
	tasks(only)
	for _, c := range []struct {
		name  string
		parts []func(ItemWriter)
		want  []byte
	}{
		{"between sections", []func(ItemWriter){pre, tasks, post}, only.Written()},
		{"alone", []func(ItemWriter){tasks}, only.Written()},
		{"no task", []func(ItemWriter){pre, post}, nil},
	} {
		b := buffer(t, MagicStackshot, func(w ItemWriter) {
			for _, p := range c.parts {
				p(w)
			}
		})
		got, err := TaskSection(b)
		ok(t, err)
		if !bytes.Equal(got, c.want) {
			t.Errorf("%s: % x, want % x", c.name, got, c.want)
		}
		_, err = TaskSection(b[:len(b)-1])
		wantFormat(t, err, ErrTruncated)
	}
}
