package symbol

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"slices"

	"stackshot/internal/elffile"
	"stackshot/internal/foreign"
	"stackshot/internal/image"
)

// maxCRC is the size of a debug file whose checksum is still made.
const maxCRC = 512 << 20

// debugQuery is one search for a split debug file.
type debugQuery struct {
	build []byte
	link  debugLink
	dir   string // of the file itself
	roots []string
}

// candidate is where a split debug file may be, and how it is known there.
type candidate struct {
	foreign.Where
	check func(*File) error
}

// candidates are best first: those by build-id need no checksum.
func (q debugQuery) candidates(debugRoots []string) []candidate {
	var byID, byLink []candidate
	for _, root := range q.roots {
		where := func(elem ...string) foreign.Where { return foreign.Where{Root: root, Path: path.Join(elem...)} }
		for _, d := range debugRoots {
			if id := hex.EncodeToString(q.build); len(id) > 2 {
				byID = append(byID, candidate{where(d, ".build-id", id[:2], id[2:]+".debug"), q.checkID})
			}
		}
		if q.link.name == "" || q.dir == "" || path.Base(q.link.name) != q.link.name {
			continue
		}
		dirs := []string{q.dir, path.Join(q.dir, ".debug")}
		for _, d := range debugRoots {
			dirs = append(dirs, path.Join(d, q.dir))
		}
		for _, dir := range dirs {
			byLink = append(byLink, candidate{where(dir, q.link.name), q.checkLink})
		}
	}
	return append(byID, byLink...)
}

// debugFile finds the split debug file and does the reading rd of it. nil without
// one; the error is of a file that was there and was refused.
func (r *Resolver) debugFile(ctx context.Context, q debugQuery, rd reading) (got *loaded, refused error) {
	try := func(c candidate) bool {
		if ctx.Err() != nil {
			return false
		}
		rd := rd
		rd.Place, rd.check = image.Place{Where: c.Where}, c.check
		var err error
		if got, err = r.read(rd); err != nil && !errors.Is(err, fs.ErrNotExist) {
			refused = err
		}
		return got != nil
	}
	if slices.ContainsFunc(q.candidates(r.o.DebugRoots), try) {
		return got, nil
	}
	if r.o.Server == nil || len(q.build) == 0 || ctx.Err() != nil {
		return nil, refused
	}
	file, err := r.o.Server.Fetch(ctx, q.build)
	if err == nil {
		try(candidate{foreign.Where{Path: file}, q.checkID})
	} else if !errors.Is(err, fs.ErrNotExist) {
		refused = err
	}
	return got, refused
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

// debugLink names a split debug file by its last path component and its CRC-32.
type debugLink struct {
	name string
	crc  uint32
}

// readDebugLink reads .gnu_debuglink; zero without one.
func readDebugLink(in elffile.Reader, m *elffile.Layout) (debugLink, error) {
	s := m.Section(".gnu_debuglink")
	if s == nil {
		return debugLink{}, nil
	}
	b, err := in.Bytes(s.Span(), 4096, ".gnu_debuglink")
	if err != nil {
		return debugLink{}, err
	}
	name := elffile.Text(b, 0, 255)
	at := (len(name) + 4) &^ 3
	if name == "" || at+4 > len(b) {
		return debugLink{}, fmt.Errorf(".gnu_debuglink at offset %#x: %w", s.Off, elffile.ErrDamaged)
	}
	return debugLink{name, binary.LittleEndian.Uint32(b[at:])}, nil
}
