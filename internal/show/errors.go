package show

import (
	"errors"
	"io/fs"
)

// WithoutPath is an error of a file without operation and path, for a line that
// names the file in its own way.
func WithoutPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
