package symbol

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"

	"stackshot/internal/elffile"
	"stackshot/internal/foreign"
	"stackshot/internal/image"
)

// defaultDebugRoots are where distributions put split debug files.
var defaultDebugRoots = []string{"/usr/lib/debug"}

// maxCRC is the size of a debug file whose checksum is still made.
const maxCRC = 512 << 20

// debugQuery is one search for a split debug file.
type debugQuery struct {
	build []byte
	link  debugLink
	dir   string // of the file itself
	roots []string
}

// wheres lists where a split debug file may be, best first. Those by build-id
// need no checksum.
func (q debugQuery) wheres(debugRoots []string) (byID, byLink []foreign.Where) {
	for _, root := range q.roots {
		add := func(list *[]foreign.Where, p string) { *list = append(*list, foreign.Where{Root: root, Path: p}) }
		for _, d := range debugRoots {
			if id := hex.EncodeToString(q.build); len(id) > 2 {
				add(&byID, path.Join(d, ".build-id", id[:2], id[2:]+".debug"))
			}
		}
		if q.link.name == "" || q.dir == "" || path.Base(q.link.name) != q.link.name {
			continue
		}
		add(&byLink, path.Join(q.dir, q.link.name))
		add(&byLink, path.Join(q.dir, ".debug", q.link.name))
		for _, d := range debugRoots {
			add(&byLink, path.Join(d, q.dir, q.link.name))
		}
	}
	return byID, byLink
}

// debugFile finds the split debug file and asks it. nil without one; the error
// is of a file that was there and was refused.
func (r *Resolver) debugFile(c *call, q debugQuery, ask func(*File, *texts) map[uint64]hit) (*loaded, foreign.Where, error) {
	byID, byLink := q.wheres(r.o.DebugRoots)
	var refused error
	try := func(w foreign.Where, check func(*File) error) *loaded {
		if c.ctx.Err() != nil {
			return nil
		}
		got, err := r.read(reading{Place: image.Place{Where: w}, check: check, ask: ask, sections: c.lines})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			refused = err
		}
		return got
	}
	for _, w := range byID {
		if got := try(w, q.checkID); got != nil {
			return got, w, nil
		}
	}
	for _, w := range byLink {
		if got := try(w, q.checkLink); got != nil {
			return got, w, nil
		}
	}
	if r.o.Server == nil || len(q.build) == 0 || c.ctx.Err() != nil {
		return nil, foreign.Where{}, refused
	}
	file, err := r.o.Server.Fetch(c.ctx, q.build)
	if err == nil {
		w := foreign.Where{Path: file}
		return try(w, q.checkID), w, refused
	}
	if !errors.Is(err, fs.ErrNotExist) {
		refused = err
	}
	return nil, foreign.Where{}, refused
}

func (q debugQuery) checkID(f *File) error {
	return image.SameBuild(string(q.build), f.build)
}

// checkLink accepts a file with the wanted checksum. Two build-ids that differ
// are never of one build.
func (q debugQuery) checkLink(f *File) error {
	if len(q.build) > 0 && len(f.build) > 0 {
		return q.checkID(f)
	}
	if f.in.Size > maxCRC {
		return fmt.Errorf("%d bytes, a checksum is made of %d at most: %w", f.in.Size, maxCRC, elffile.ErrTooBig)
	}
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, io.NewSectionReader(f.in, 0, int64(f.in.Size))); err != nil {
		return err
	}
	if sum.Sum32() != q.link.crc {
		return fmt.Errorf("%w: CRC-32 %08x, .gnu_debuglink says %08x", foreign.ErrOther, sum.Sum32(), q.link.crc)
	}
	return nil
}
