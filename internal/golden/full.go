package golden

import (
	"errors"
	"io"
	"testing"
)

var errFull = errors.New("disk full")

// full takes some bytes and then fails.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// ErrorsComeBack fails the test unless write gives the error of its writer, wherever that comes.
func ErrorsComeBack(t testing.TB, what string, write func(io.Writer) error) {
	t.Helper()
	for room := 0; ; room = 3*room + 10 {
		w := &full{room}
		if err := write(w); w.room >= 0 {
			return
		} else if err != errFull {
			t.Errorf("%s after %d bytes: %v", what, room, err)
		}
	}
}
