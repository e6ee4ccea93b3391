package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

// FileName is the name of a snapshot that the user did not name: host and time. The time is
// UTC, because the local zone is a file on a disk; milliseconds tell captures apart.
func FileName(at time.Time, e kcdata.Envelope) string {
	host, err := os.Hostname() // uname, no file
	if err != nil {
		host = ""
	}
	return FileNameOf(host, at, e)
}

// FileNameOf is FileName for another host; "": it is not known.
func FileNameOf(host string, at time.Time, e kcdata.Envelope) string {
	host = cmp.Or(host, "unknown")
	ext := ".kcdata"
	if e == kcdata.EnvelopeZstd {
		ext += ".zst" // a zstd frame around KCData
	}
	return fmt.Sprintf("stackshot-%s-%s%s", SafeName(host), at.UTC().Format("20060102T150405.000Z"), ext)
}

// SafeName replaces each character that may need quoting by "_", and cuts s to 64 bytes.
func SafeName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '.' || r == '_' {
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), 64)]
}

// MaxLastResort bounds the files of a series in the place of last resort, which is
// memory: a target that refuses every file must not fill it.
const MaxLastResort = 8

// Series gives each file of a series its destination: named after host, time and number
// in dir, or else after the file that the user named, with the number.
type Series struct {
	writer    Writer
	given     bool   // the user named a file or a directory
	dir       string // with a slash at its end; "": the current directory
	stem, ext string // FILE becomes FILE-0001.ext; stem "": host and time
	envelope  kcdata.Envelope
	spared    int // files in the place of last resort
}

// NameSeries names the files of a series after the path that the user gave, "" for none.
// Whether that is a directory only the file system can tell.
func (w Writer) NameSeries(ctx context.Context, output string, e kcdata.Envelope) *Series {
	s := &Series{writer: w, envelope: e, given: output != ""}
	if strings.HasSuffix(output, "/") || output != "" && w.isDirectory(ctx, output) {
		s.dir = strings.TrimSuffix(output, "/") + "/"
	} else {
		s.stem, s.ext = splitExt(output)
	}
	return s
}

// isDirectory has the helper process look whether a file could be made in path. It is a
// directory if the answer is yes, or another reason than that path is no directory.
func (w *Writer) isDirectory(ctx context.Context, path string) bool {
	err := w.ask(ctx, order{Path: []byte(path + "/" + FileName(time.Now(), kcdata.EnvelopeNone)), Look: true}, nil, lookLimit)
	var a *answer
	if err != nil && !errors.As(err, &a) {
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

// Destination is where capture n goes, which was taken at that time. The caller saves one
// after the other.
func (s *Series) Destination(n int, at time.Time) *Destination {
	path, spare := s.name(n, at)
	return &Destination{
		Writer: s.writer, Path: path, LastResort: spare, Given: s.given,
		NoLastResort: s.spared >= MaxLastResort, spared: &s.spared,
	}
}

// name is the path of a capture, and its name for the place of last resort. Names sort as
// the captures were made, up to 9,999.
func (s *Series) name(n int, at time.Time) (path, spare string) {
	stem, ext := splitExt(FileName(at, s.envelope))
	spare = fmt.Sprintf("%s-%04d%s", stem, n, ext)
	if s.stem != "" {
		return fmt.Sprintf("%s-%04d%s", s.stem, n, s.ext), spare
	}
	return s.dir + spare, spare
}
