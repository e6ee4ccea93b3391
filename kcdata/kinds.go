package kcdata

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// kindHead is how many bytes of a file tell what it is.
const kindHead = 512

// utf8Mark is what editors write in front of text (byte order mark).
const utf8Mark = "\xef\xbb\xbf"

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
	{0, "\x1f\x8b\x08", "a gzip file, not opened here"},
	{0, "\x28\xb5\x2f\xfd", "a zstd file, not opened here"},
	{0, "\x7fELF", "an ELF file"},
	{0, "KDUMP   ", "a memory dump of makedumpfile"},
	{0, "\x00\x03\xaa\x55", "a ktrace file of Apple's"},
	{0, "bplist00", "a property list"},
	{0, "PERFILE2", "a file of perf record"},
	{0, "makedumpfile", "a memory dump of makedumpfile in flattened form"},
	{0, "version https://git-lfs", "a pointer of Git LFS, not the file itself"},
	{0, "<!doctype html", "an HTML page"},
	{0, "<!DOCTYPE html", "an HTML page"},
	{0, "<html", "an HTML page"},
	{0, "\xff\xfe", "text in UTF-16"},
	{0, "\xfe\xff", "text in UTF-16"},
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
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte(utf8Mark)), " \t\r\n")
	switch {
	case allZero(head):
		return "zeros"
	case bytes.HasPrefix(text, []byte("{")) && bytes.Contains(head, []byte(`"bug_type"`)):
		return "a report of Apple's in JSON (.ips)"
	case bytes.HasPrefix(text, []byte("{")), bytes.HasPrefix(bytes.Join(bytes.Fields(text), nil), []byte("[{")): // dmesg has a [ too
		return "JSON"
	case bytes.HasPrefix(text, []byte("<")) && bytes.Contains(head, []byte("<plist")):
		return "a property list"
	case isText(head):
		return "text"
	}
	if len(head) < 4 {
		return fmt.Sprintf("% x", head)
	}
	return fmt.Sprintf("magic %#x", binary.LittleEndian.Uint32(head))
}

// isText reports whether head is text: it has no control characters but those of lines, and of terminals.
func isText(head []byte) bool {
	return !bytes.ContainsFunc(head, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b", r) })
}
