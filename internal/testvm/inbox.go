package testvm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// inbox is where the files go that a guest sends.
type inbox struct {
	dir   string   // empty: they are dropped
	names []string // of files that have come, in that order
}

// add takes the body of a frame of kind File. The name is the guest's word: one that
// leads out of the folder is refused.
func (in *inbox) add(body []byte) error {
	name, data, ok := bytes.Cut(body, []byte{0})
	if !ok || !filepath.IsLocal(string(name)) {
		return fmt.Errorf("guest sent a file named %q", name)
	}
	if in.dir == "" {
		return nil
	}
	path := filepath.Join(in.dir, string(name))
	mode := os.O_APPEND
	if !slices.Contains(in.names, string(name)) {
		in.names = append(in.names, string(name))
		mode = os.O_TRUNC
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|mode, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
