package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

// seriesNames gives each file of a series its name: after host, time and number
// in dir, or else after the file that the user named, with the number.
type seriesNames struct {
	dir       string // with a slash at its end; "": the current directory
	stem, ext string // FILE becomes FILE-0001.ext; stem "": host and time
	envelope  kcdata.Envelope
}

// nameSeries reads -o. Whether it names a directory only the file system can
// tell.
func nameSeries(output string, e kcdata.Envelope, isDirectory func(path string) bool) seriesNames {
	n := seriesNames{envelope: e}
	switch {
	case output == "":
	case strings.HasSuffix(output, "/"):
		n.dir = output
	case isDirectory(output):
		n.dir = output + "/"
	default:
		n.stem, n.ext = splitExt(output)
	}
	return n
}

// isDirectory has the helper process ask (C2) whether a file could be made in
// path: only a directory says yes, or has another reason against it than not
// being one.
func isDirectory(ctx context.Context, path string) bool {
	err := saveOrder{Path: []byte(path + "/" + fileName(time.Now(), kcdata.EnvelopeNone)), Look: true}.ask(ctx, nil, lookLimit)
	var answer *saveAnswer
	if err != nil && !errors.As(err, &answer) {
		return false // no answer
	}
	return !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ENOENT)
}

// splitExt cuts the extension off, both parts of .kcdata.zst.
func splitExt(path string) (stem, ext string) {
	ext = filepath.Ext(path)
	stem = strings.TrimSuffix(path, ext)
	if inner := filepath.Ext(stem); inner == ".kcdata" {
		stem, ext = strings.TrimSuffix(stem, inner), inner+ext
	}
	if base := filepath.Base(stem); stem == "" || strings.HasSuffix(stem, "/") || base == "." {
		return path, "" // .name is a name
	}
	return stem, ext
}

// of is the path of capture n, taken at a time, and its name for the place of
// last resort. Names sort as the captures were made, up to 9,999.
func (s seriesNames) of(n int, at time.Time) (path, spare string) {
	stem, ext := splitExt(fileName(at, s.envelope))
	spare = fmt.Sprintf("%s-%04d%s", stem, n, ext)
	if s.stem != "" {
		return fmt.Sprintf("%s-%04d%s", s.stem, n, s.ext), spare
	}
	return s.dir + spare, spare
}
