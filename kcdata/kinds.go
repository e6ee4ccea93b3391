package kcdata

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// kindHead is how many bytes of a file tell what it is.
const kindHead = 512

// kinds are files of other programs that people take for snapshots, by how they begin.
var kinds = []struct {
	at     int
	begins string
	name   string
}{
	{0, "\xfd7zXZ\x00", "an xz file, to be unpacked first"},
	{0, "BZh", "a bzip2 file, to be unpacked first"},
	{0, "\x04\x22\x4d\x18", "an lz4 file, to be unpacked first"},
	{0, "7z\xbc\xaf\x27\x1c", "a 7z archive, to be unpacked first"},
	{0, "PK\x03\x04", "a zip archive, to be unpacked first"},
	{257, "ustar", "a tar archive, to be unpacked first"},
	{0, "\x1f\x8b", "a gzip file in other codings"},
	{0, "\x7fELF", "an ELF file"},
	{0, "KDUMP   ", "a memory dump of makedumpfile"},
	{0, "\x00\x03\xaa\x55", "a ktrace file of Apple's"},
	{0, "bplist00", "a property list"},
	{0, "PERFILE2", "a file of perf record"},
}

// isEnvelope reports whether head begins a file that Read reads.
func isEnvelope(head string) bool {
	magic := binary.LittleEndian.Uint32([]byte(head))
	return magic == zstdMagic || Type(magic).IsMagic()
}

// kindOf names a file that is not KCData, by its first kindHead bytes or the fewer that it has.
func kindOf(head []byte) string {
	for _, k := range kinds {
		if len(head) > k.at && bytes.HasPrefix(head[k.at:], []byte(k.begins)) {
			return k.name
		}
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case allZero(head):
		return "zeros"
	case bytes.HasPrefix(text, []byte("{")) && bytes.Contains(head, []byte(`"bug_type"`)):
		return "a report of Apple's in JSON (.ips)"
	case bytes.HasPrefix(text, []byte("{")), bytes.HasPrefix(text, []byte("[")):
		return "JSON"
	case bytes.HasPrefix(text, []byte("<")) && bytes.Contains(head, []byte("<plist")):
		return "a property list"
	case isText(head):
		return "text"
	}
	return fmt.Sprintf("magic %#x", binary.LittleEndian.Uint32(head))
}

// isText reports whether head is text in UTF-8, whose last character may be cut.
func isText(head []byte) bool {
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n < 2 && utf8.FullRune(head) || r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b", r) {
			return false
		}
		head = head[n:]
	}
	return true
}
