// Package catalog finds the snapshots of a directory, newest first, and lists them.
//
//	L1  A file is a snapshot by how it begins, whatever its name. Only regular files are opened: a
//	    FIFO or a device is not.
//	L2  The order is that of the captures, by the time that stands in each file. A copy changes a
//	    file's own times, and a person its name.
//	L3  A file that looks like a snapshot and cannot be read is listed with the reason.
//	L4  Memory is that of one file, and a name and a host for each.
package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stackshot/internal/show"
)

// File is a snapshot, as its beginning tells.
type File struct {
	Path  string
	Host  string // "": not known
	Taken uint64 // CLOCK_REALTIME of the capture, ns since the epoch; 0: not known
	Err   error  // why it is not known what it is; it does not name the file
}

// Directory is what was found in one.
type Directory struct {
	Path   string
	Files  []File // newest first, then those whose time is not known, by name
	Closed int    // other regular files that could not be opened: whether they are snapshots is not known
}

// errNot is the reason for a file that only its name says is a snapshot.
var errNot = errors.New("not a snapshot")

// Read looks at every file of a directory, and not below it. Its error names the directory.
func Read(path string) (*Directory, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Absolute(path), show.WithoutPath(err))
	}
	d := &Directory{Path: path}
	for _, e := range entries {
		if e.Type().IsRegular() || e.Type()&os.ModeSymlink != 0 {
			d.look(filepath.Join(path, e.Name()))
		}
	}
	slices.SortStableFunc(d.Files, func(a, b File) int {
		return cmp.Or(cmp.Compare(b.Taken, a.Taken), strings.Compare(a.Path, b.Path))
	})
	return d, nil
}

// Newest is the file of the last capture whose time is known; nil if there is none.
func (d *Directory) Newest() *File {
	if len(d.Files) == 0 || d.Files[0].Taken == 0 {
		return nil
	}
	return &d.Files[0]
}

// Unreadable are the files of which it is not known what they are.
func (d *Directory) Unreadable() (files []File) {
	for _, f := range d.Files {
		if f.Err != nil {
			files = append(files, f)
		}
	}
	return files
}

// look adds a file if it is a snapshot, or is called one.
func (d *Directory) look(path string) {
	f := File{Path: path}
	head, err := readHead(path)
	named := strings.HasSuffix(path, ".kcdata") || strings.HasSuffix(path, ".kcdata.zst")
	switch {
	case errors.Is(err, errOther):
		return
	case err == nil:
		err = f.fill(head)
	case !named:
		d.Closed++
		return
	}
	if f.Err = err; err == nil || named && errors.Is(err, errNot) || !errors.Is(err, errNot) {
		d.Files = append(d.Files, f)
	}
}

// Absolute is a path for a message: "." says little.
func Absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}
