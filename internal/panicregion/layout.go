package panicregion

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// PageSize is the unit of the region's own layout, whatever the machine's pages are.
const PageSize = 4096

// Places in the head.
const (
	copySize   = 1024
	HeadCopies = 2    // of Static, one every copySize bytes
	RunAt      = 2048 // the walk's own words (struct panic_run, internal/bpf/panic.h)
)

// Version of the layout. A reader refuses another one.
const Version = 1

// HeadMagic and ListMagic begin a head's copy and a list page.
const (
	HeadMagic uint64 = 0x0d_5453_4b53_4e50_91 // not text: no log has it
	ListMagic uint64 = 0x0d_5453_4b53_4c46_92
)

// Kinds of region.
const (
	KindPanic uint32 = 1
	KindLive  uint32 = 2
)

// Kinds of section.
const (
	SectionDescription uint32 = 1 // of the machine (Description), packed; with a checksum
	SectionRecords     uint32 = 2 // room for the records; how much of it is used the walk says
	SectionRegion      uint32 = 3 // of a live capture: its records, in chunks,
	SectionParts       uint32 = 4 // what became of each item,
	SectionPieces      uint32 = 5 // the chain of chunks of an item,
	SectionQueue       uint32 = 6 // the items,
	SectionStop        uint32 = 7 // the words of the stop,
	SectionWorkers     uint32 = 8 // what each CPU's worker did,
	SectionSlots       uint32 = 9 // and what each CPU ran before
)

// MaxSections is how many a head has room for.
const MaxSections = 8

// Section is one part of the region: Off and Len in bytes of the region.
type Section struct {
	Kind uint32
	Sum  uint32 // CRC-32C of its bytes; 0 where they change
	Off  uint64
	Len  uint64
}

// Static is what the process writes into the head. Only the process writes it.
type Static struct {
	Kind       uint32
	Arch       uint32 // ELF's e_machine
	Region     uint64 // tells this region from others of the same boot: CLOCK_BOOTTIME ns when it was made
	Generation uint64 // counts up with each writing of the head
	BootID     [16]byte
	BuildID    []byte // of the kernel, at most 32 bytes
	TextAddr   uint64 // of _text, where it lies in this boot
	Pages      uint64 // of the region, of PageSize bytes
	ListPages  uint32 // they begin at page 1
	Written    uint64 // CLOCK_REALTIME, ns
	Sections   []Section
}

// raw is Static as it lies in memory, little-endian, 512 bytes.
type raw struct {
	Magic                uint64
	Version, Sum         uint32 // Sum: CRC-32C of the copy with Sum 0
	Kind, Arch           uint32
	Region, Generation   uint64
	BootID               [16]byte
	BuildID              [32]byte
	BuildIDLen, NSection uint32
	TextAddr, Pages      uint64
	ListPages, Reserved  uint32
	Written              uint64
	Sections             [MaxSections]Section
	Pad                  [152]byte
}

// CopyBytes is the size of one copy of Static.
var CopyBytes = binary.Size(raw{})

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is the checksum of all parts of a region.
func Sum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Errors of reading.
var (
	ErrNoHead  = errors.New("no head of a panic region")
	ErrDamaged = errors.New("damaged")
)

// PutStatic writes one copy of s into a head: the copy that is not of the generation
// before, so that this one stays whole meanwhile.
func PutStatic(head []byte, s *Static) error {
	if len(s.BuildID) > 32 || len(s.Sections) > MaxSections {
		return fmt.Errorf("panic region: build-id of %d bytes, %d sections: there is room for 32 and %d", len(s.BuildID), len(s.Sections), MaxSections)
	}
	r := raw{
		Magic: HeadMagic, Version: Version, Kind: s.Kind, Arch: s.Arch, Region: s.Region, Generation: s.Generation,
		BootID: s.BootID, BuildIDLen: uint32(len(s.BuildID)), NSection: uint32(len(s.Sections)),
		TextAddr: s.TextAddr, Pages: s.Pages, ListPages: s.ListPages, Written: s.Written,
	}
	copy(r.BuildID[:], s.BuildID)
	copy(r.Sections[:], s.Sections)
	b := make([]byte, CopyBytes)
	defer clear(b) // of our own memory, too, a dump has what is left: it would be found as a damaged head
	if _, err := binary.Encode(b, binary.LittleEndian, &r); err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(b[12:], Sum(b))
	copy(head[s.Generation%HeadCopies*copySize:], b)
	return nil
}

// IsHead reports whether a page may be a head: one of its copies has the magic.
func IsHead(page []byte) bool {
	for i := range HeadCopies {
		if at := i * copySize; at+8 <= len(page) && binary.LittleEndian.Uint64(page[at:]) == HeadMagic {
			return true
		}
	}
	return false
}

// ReadStatic reads the newest whole copy of a head. An error of kind ErrDamaged says what is
// wrong with each copy; with ErrNoHead there is none.
func ReadStatic(head []byte) (*Static, error) {
	var best *Static
	var whys []error
	for i := range HeadCopies {
		at := i * copySize
		if at+CopyBytes > len(head) || binary.LittleEndian.Uint64(head[at:]) != HeadMagic {
			continue
		}
		s, err := readCopy(head[at : at+CopyBytes])
		if err != nil {
			whys = append(whys, fmt.Errorf("copy %d of the head: %w", i, err))
			continue
		}
		if best == nil || s.Generation > best.Generation {
			best = s
		}
	}
	switch {
	case best != nil:
		return best, nil
	case whys != nil:
		return nil, errors.Join(whys...)
	}
	return nil, ErrNoHead
}

func readCopy(b []byte) (*Static, error) {
	var r raw
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, &r); err != nil {
		return nil, err
	}
	sum := bytes.Clone(b)
	binary.LittleEndian.PutUint32(sum[12:], 0)
	switch {
	case Sum(sum) != r.Sum:
		return nil, fmt.Errorf("%w: checksum %#x, computed %#x", ErrDamaged, r.Sum, Sum(sum))
	case r.Version != Version:
		return nil, fmt.Errorf("version %d of the layout: this program reads %d", r.Version, Version)
	case r.BuildIDLen > 32 || r.NSection > MaxSections || r.Pages > maxPages || uint64(r.ListPages) >= r.Pages:
		return nil, fmt.Errorf("%w: build-id of %d bytes, %d sections, %d pages, of these %d of the list", ErrDamaged, r.BuildIDLen, r.NSection, r.Pages, r.ListPages)
	}
	s := &Static{
		Kind: r.Kind, Arch: r.Arch, Region: r.Region, Generation: r.Generation, BootID: r.BootID,
		BuildID: bytes.Clone(r.BuildID[:r.BuildIDLen]), TextAddr: r.TextAddr, Pages: r.Pages, ListPages: r.ListPages, Written: r.Written,
		Sections: append([]Section(nil), r.Sections[:r.NSection]...),
	}
	for _, x := range s.Sections {
		if size := r.Pages * PageSize; x.Off > size || x.Len > size-x.Off {
			return nil, fmt.Errorf("%w: section %d of %d bytes at %d, in a region of %d", ErrDamaged, x.Kind, x.Len, x.Off, size)
		}
	}
	return s, nil
}

// maxPages bounds a region: 64 GiB.
const maxPages = 1 << 24

// Section gives a section by its kind.
func (s *Static) Section(kind uint32) (Section, bool) {
	for _, x := range s.Sections {
		if x.Kind == kind {
			return x, true
		}
	}
	return Section{}, false
}

// TornCopy is what is wrong with a copy of a head beside which another one is whole; nil: nothing.
func TornCopy(head []byte) error {
	for i := range HeadCopies {
		at := i * copySize
		if at+CopyBytes > len(head) || binary.LittleEndian.Uint64(head[at:]) != HeadMagic {
			continue
		}
		if _, err := readCopy(head[at : at+CopyBytes]); err != nil {
			return fmt.Errorf("copy %d of the head: %w", i, err)
		}
	}
	return nil
}

// Claims is of which boot and region a head says it is, whole or not: of its first copy that has the magic.
func Claims(head []byte) (boot [16]byte, region uint64) {
	for i := range HeadCopies {
		at := i * copySize
		if at+CopyBytes > len(head) || binary.LittleEndian.Uint64(head[at:]) != HeadMagic {
			continue
		}
		var r raw
		if _, err := binary.Decode(head[at:], binary.LittleEndian, &r); err == nil {
			return r.BootID, r.Region
		}
	}
	return boot, 0
}
