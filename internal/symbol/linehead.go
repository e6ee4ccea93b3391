package symbol

import (
	"fmt"
	"path"

	"stackshot/internal/cursor"
	"stackshot/internal/elffile"
)

const (
	maxLineFiles = 1 << 20 // directories, and files, of one unit
	maxFileName  = 4096    // bytes of one of either

	contentPath  = 1 // DW_LNCT_path
	contentIndex = 2 // DW_LNCT_directory_index
)

// lineTexts are the sections that a line table is made of.
type lineTexts struct{ line, lineStr, str []byte }

// lineHead is the header of one unit's line table (DWARF 5, section 6.2.4, versions 2
// to 5). debug/dwarf would make all the file names that the header claims, each joined
// with its directory: a small file can make it take gigabytes. lineHead joins a name
// only when somebody asks for it.
type lineHead struct {
	version    uint16
	wide       bool // offsets of 8 bytes
	minInst    uint8
	maxOps     uint8
	lineBase   int8
	lineRange  uint8
	opcodeBase uint8
	lengths    []byte // of the operands of opcode 1, 2 ...
	names      fileNames
}

// fileNames are the files of one unit, by the numbers of its line table.
type fileNames struct {
	comp  string   // where the compiler was run
	dirs  [][]byte // parts of a section
	files []fileName
}

type fileName struct {
	dir  uint64 // index in dirs
	name []byte // part of a section
}

// path returns the name of file n; "" if that is not known.
func (f *fileNames) path(n uint64) string {
	if n >= uint64(len(f.files)) || len(f.files[n].name) == 0 {
		return ""
	}
	file := f.files[n]
	name, dir := string(file.name), ""
	if path.IsAbs(name) {
		return name
	}
	if file.dir < uint64(len(f.dirs)) {
		dir = string(f.dirs[file.dir])
	}
	if file.dir > 0 && !path.IsAbs(dir) {
		dir = path.Join(f.comp, dir)
	}
	return path.Join(dir, name)
}

// readLineHead reads the header of the unit that the line table has at off, and
// returns the instructions behind it. comp is the unit's DW_AT_comp_dir.
func readLineHead(in *lineTexts, off uint64, comp string) (*lineHead, []byte, error) {
	if off > uint64(len(in.line)) {
		return nil, nil, fmt.Errorf("offset %#x of %d bytes: %w", off, len(in.line), elffile.ErrDamaged)
	}
	h := &lineHead{names: fileNames{comp: comp[:min(len(comp), maxFileName)]}}
	c := &cursor.Cursor{Data: in.line[off:]}
	length, wide := c.Length()
	h.wide = wide
	c = &cursor.Cursor{Data: c.Take(length)}
	if h.version = c.U16(); h.version < 2 || h.version > 5 {
		return nil, nil, fmt.Errorf("version %d of %d bytes: %w", h.version, length, elffile.ErrDamaged)
	}
	if h.version >= 5 {
		c.Take(2) // sizes of addresses and of segment selectors: the instructions tell
	}
	head := &cursor.Cursor{Data: c.Take(c.Offset(h.wide))}
	if c.Bad {
		return nil, nil, fmt.Errorf("a header longer than its %d bytes: %w", length, elffile.ErrDamaged)
	}
	h.readNumbers(head)
	if h.version >= 5 {
		for _, d := range h.entries(head, in) {
			h.names.dirs = append(h.names.dirs, d.name)
		}
		h.names.files = h.entries(head, in)
	} else {
		h.readLists(head)
	}
	if head.Bad || h.lineRange == 0 || h.maxOps == 0 {
		return nil, nil, fmt.Errorf("a header of %d bytes that does not end in it: %w", len(head.Data), elffile.ErrDamaged)
	}
	return h, c.Take(uint64(c.Left())), nil
}

func (h *lineHead) readNumbers(c *cursor.Cursor) {
	h.minInst, h.maxOps = c.U8(), 1
	if h.version >= 4 {
		h.maxOps = c.U8()
	}
	c.U8() // default_is_stmt
	h.lineBase, h.lineRange, h.opcodeBase = int8(c.U8()), c.U8(), c.U8()
	h.lengths = c.Take(uint64(max(h.opcodeBase, 1) - 1))
}

// readLists reads directories and files as they were before DWARF 5: each list
// ends with an empty name; the first directory is comp, the first file none.
func (h *lineHead) readLists(c *cursor.Cursor) {
	n := &h.names
	n.dirs = append(n.dirs, []byte(n.comp))
	for dir := c.Text(maxFileName); len(dir) > 0; dir = c.Text(maxFileName) {
		n.dirs = append(n.dirs, dir)
		c.Bad = c.Bad || len(n.dirs) > maxLineFiles
	}
	n.files = append(n.files, fileName{})
	for h.readFile(c) {
	}
}

// readFile adds a file; false at the end of the list.
func (h *lineHead) readFile(c *cursor.Cursor) bool {
	name := c.Text(maxFileName)
	if len(name) == 0 {
		return false
	}
	dir := c.ULEB()
	c.ULEB() // time
	c.ULEB() // size
	h.names.files = append(h.names.files, fileName{dir, name})
	c.Bad = c.Bad || len(h.names.files) > maxLineFiles
	return !c.Bad
}

// entries reads directories or files as they are since DWARF 5.
func (h *lineHead) entries(c *cursor.Cursor, in *lineTexts) []fileName {
	fields := make([]struct{ content, form uint64 }, c.U8())
	for i := range fields {
		fields[i].content, fields[i].form = c.ULEB(), c.ULEB()
	}
	count := c.ULEB()
	// Each field has at least one byte.
	if count > maxLineFiles || count*uint64(len(fields)) > uint64(c.Left()) || len(fields) == 0 && count > 0 {
		c.Bad = true
		return nil
	}
	out := make([]fileName, count)
	for i := range out {
		for _, f := range fields {
			text, n := h.field(c, in, f.form)
			switch f.content {
			case contentPath:
				out[i].name = text
			case contentIndex:
				out[i].dir = n
			}
		}
	}
	return out
}

// field reads a text or a number, by the number of its form in DWARF 5, table 7.6.
// Texts of other files are not known.
func (h *lineHead) field(c *cursor.Cursor, in *lineTexts, form uint64) (text []byte, n uint64) {
	switch form {
	case 0x08: // string
		text = c.Text(maxFileName)
	case 0x0e: // strp
		text = textAt(in.str, c.Offset(h.wide))
	case 0x1f: // line_strp
		text = textAt(in.lineStr, c.Offset(h.wide))
	case 0x1d: // strp_sup
		c.Offset(h.wide)
	case 0x0f, 0x1a: // udata, strx
		n = c.ULEB()
	case 0x0b: // data1
		n = uint64(c.U8())
	case 0x05: // data2
		n = uint64(c.U16())
	case 0x06: // data4
		n = uint64(c.U32())
	case 0x07: // data8
		n = c.U64()
	case 0x1e: // data16
		c.Take(16)
	case 0x09: // block
		c.Take(c.ULEB())
	case 0x25, 0x26, 0x27, 0x28: // strx1 to strx4
		c.Take(form - 0x25 + 1)
	default: // of no known size
		c.Bad = true
	}
	return text, n
}

// textAt returns the text that a table of texts has at off, no longer than a
// file name may be; nil if there is none.
func textAt(table []byte, off uint64) []byte {
	if off >= uint64(len(table)) {
		return nil
	}
	in := cursor.Cursor{Data: table, Pos: int(off)}
	return in.Text(maxFileName)
}
