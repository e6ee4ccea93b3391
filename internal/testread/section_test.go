package testread

import (
	"bytes"
	"errors"
	"testing"

	"stackshot/kcdata"
)

func TestTaskSection(t *testing.T) {
	type write = func(kcdata.ItemWriter) error
	pre := func(w kcdata.ItemWriter) error { return w.Uint64Desc("clock", 1) }
	tasks := func(w kcdata.ItemWriter) error {
		return errors.Join(
			w.BeginContainer(kcdata.TypeTask, 1), w.BeginContainer(kcdata.TypeThread, 1), w.EndContainer(1), w.EndContainer(1),
			w.BeginContainer(kcdata.TypeTransitioningTask, 2), w.EndContainer(2))
	}
	post := func(w kcdata.ItemWriter) error {
		return errors.Join(w.BeginContainer(kcdata.TypeExclaves, 0), w.EndContainer(0), w.Struct(kcdata.TypeDuration, kcdata.Duration{}))
	}
	only := kcdata.NewBuffer(0)
	if err := tasks(only); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		parts []write
		want  []byte
	}{
		"between sections": {[]write{pre, tasks, post}, only.Written()},
		"alone":            {[]write{tasks}, only.Written()},
		"no task":          {[]write{pre, post}, nil},
	} {
		b := file(t, false, func(w kcdata.ItemWriter) (err error) {
			for _, part := range c.parts {
				err = errors.Join(err, part(w))
			}
			return err
		})
		if got, err := TaskSection(b); err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%s: % x, %v; want % x", name, got, err, c.want)
		}
		if _, err := TaskSection(b[:len(b)-1]); !errors.Is(err, kcdata.ErrTruncated) {
			t.Errorf("%s, without its last byte: %v", name, err)
		}
	}
}
